//! Specifications as TOML: the settings of the one-line form as keys, its sections as tables.

use noctule_timebase::Span;
use toml::{Table, Value};

use super::super::spec::{LinkSpec, SpecError};
use super::{Place, Reader, Recordings};

/// Tables a section may contain, besides its settings.
const DIRECTIONS: [(&str, &str); 2] = [("a_to_b", "a>b"), ("b_to_a", "b>a")];

impl LinkSpec {
    /// Reads the TOML form.
    pub fn parse_toml(text: &str, recordings: Recordings<'_>) -> Result<LinkSpec, SpecError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            SpecError::Toml(format!("not TOML: {}; see docs/spec/link-text.md", error.to_string().trim()))
        })?;
        let mut reader = Reader { spec: LinkSpec::default(), at: Span::ZERO, recordings };
        section(&mut reader, "", &table, &["a_to_b", "b_to_a", "step"])?;
        let steps = match table.get("step") {
            None => return Ok(reader.spec),
            Some(Value::Array(steps)) => steps,
            Some(_) => return Err(shape("step", "write [[step]] above each step of the script")),
        };
        for step in steps {
            let step = step.as_table().ok_or_else(|| shape("step", "write [[step]] above each step"))?;
            let at = step.get("at").and_then(Value::as_str);
            let at = at.ok_or_else(|| shape("at", "each step needs a time, such as at = \"10s\""))?;
            section(&mut reader, &format!("@{at}"), step, &["a_to_b", "b_to_a", "at"])?;
        }
        Ok(reader.spec)
    }
}

/// Settings for both directions first, then those of either.
fn section(reader: &mut Reader<'_>, at: &str, table: &Table, apart: &[&str]) -> Result<(), SpecError> {
    apply(reader, at, table, apart)?;
    for (key, direction) in DIRECTIONS {
        match table.get(key) {
            None => {}
            Some(Value::Table(settings)) => apply(reader, &format!("{at} {direction}"), settings, &[])?,
            Some(_) => return Err(shape(key, "write it as a table of settings")),
        }
    }
    Ok(())
}

fn apply(reader: &mut Reader<'_>, prefix: &str, table: &Table, apart: &[&str]) -> Result<(), SpecError> {
    let mut pairs = Vec::new();
    for (key, value) in table.iter().filter(|(key, _)| !apart.contains(&key.as_str())) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            // `down = true` is the word `down`; false is its opposite.
            Value::Boolean(true) if key == "down" || key == "up" => String::new(),
            Value::Boolean(false) if key == "down" => {
                pairs.push(("up".to_owned(), String::new()));
                continue;
            }
            _ => return Err(shape(key, "write a string, such as \"10ms\"")),
        };
        pairs.push((key.clone(), text));
    }
    let place = Place::parse(prefix.trim())?;
    reader.section(&place, pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())))
}

fn shape(key: &str, way_out: &str) -> SpecError {
    SpecError::Toml(format!("{key} is not what it should be; {way_out}"))
}
