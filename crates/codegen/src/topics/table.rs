//! A table of TOML as its reader takes it apart: what is missing, of the wrong type or unknown has a place.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Fault, Faults, Place, Source};
use crate::nearest;

/// A value with its place.
#[derive(Debug, Clone)]
pub(super) struct Entry<'t> {
    pub(super) value: &'t DeValue<'t>,
    /// Place of the value.
    pub(super) span: Range<usize>,
    /// Place of the key.
    pub(super) key: Range<usize>,
}

/// A text and its place.
pub(super) type Text<'t> = (&'t str, Range<usize>);

/// Keys that are still to be taken.
pub(super) struct Table<'t> {
    source: &'t Source,
    /// Name of the table in sentences: `topic /pose`.
    what: String,
    place: Range<usize>,
    entries: BTreeMap<String, Entry<'t>>,
}

impl<'t> Table<'t> {
    pub(super) fn new(
        source: &'t Source,
        what: impl Into<String>,
        table: &'t DeTable<'t>,
        place: Range<usize>,
    ) -> Self {
        let entry = |(key, value): (&'t toml::Spanned<_>, &'t toml::Spanned<DeValue<'t>>)| {
            let key: &toml::Spanned<std::borrow::Cow<'t, str>> = key;
            (key.get_ref().to_string(), Entry { value: value.get_ref(), span: value.span(), key: key.span() })
        };
        Self { source, what: what.into(), place, entries: table.iter().map(entry).collect() }
    }

    pub(super) fn at(&self, span: Range<usize>) -> Place {
        Place::new(self.source, span)
    }

    pub(super) fn place(&self) -> Place {
        self.at(self.place.clone())
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Entry<'t>> {
        self.entries.remove(key)
    }

    /// Everything that is left, in the order of the keys.
    pub(super) fn rest(&mut self) -> BTreeMap<String, Entry<'t>> {
        std::mem::take(&mut self.entries)
    }

    /// The keys that are left.
    pub(super) fn rest_keys(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// A fault for every key that was not read.
    pub(super) fn refuse_rest(self, known: &str, faults: &mut Faults) {
        for (key, entry) in &self.entries {
            let what = format!("{} has no setting \"{key}\"", self.what);
            faults.push(Fault::at(self.at(entry.key.clone()), what).help(nearest::help(key, known)));
        }
    }

    fn wrong(&self, key: &str, entry: &Entry<'t>, wanted: &str) -> Fault {
        let what = format!("{key} of {} is no {wanted}", self.what);
        Fault::at(self.at(entry.span.clone()), what)
    }

    pub(super) fn text(&mut self, key: &str) -> Result<Option<Text<'t>>, Fault> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let text = entry.value.as_str().ok_or_else(|| self.wrong(key, &entry, "text; write it in quotes"))?;
        Ok(Some((text, entry.span)))
    }

    pub(super) fn required_text(&mut self, key: &str, example: &str) -> Result<Text<'t>, Fault> {
        let missing = format!("{} has no {key}", self.what);
        self.text(key)?
            .ok_or_else(|| Fault::at(self.place(), missing).help(format!("write {key} = \"{example}\"")))
    }

    pub(super) fn whole(&mut self, key: &str, range: Range<u64>) -> Result<Option<u64>, Fault> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let number = whole(entry.value).filter(|number| range.contains(number));
        let wanted = format!("whole number from {} to {}", range.start, range.end - 1);
        number.map(Some).ok_or_else(|| self.wrong(key, &entry, &wanted))
    }

    /// A number above zero, whole or not.
    pub(super) fn positive(&mut self, key: &str) -> Result<Option<f64>, Fault> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let number = match entry.value {
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            value => whole(value).map(|number| number as f64),
        };
        let number = number.filter(|number: &f64| number.is_finite() && *number > 0.0);
        number.map(Some).ok_or_else(|| self.wrong(key, &entry, "number above zero"))
    }

    pub(super) fn truth(&mut self, key: &str) -> Result<Option<bool>, Fault> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let truth = entry.value.as_bool();
        truth.map(Some).ok_or_else(|| self.wrong(key, &entry, "truth value; write true or false"))
    }

    /// A list of texts, each with its place.
    pub(super) fn texts(&mut self, key: &str) -> Result<Vec<Text<'t>>, Fault> {
        let Some(entry) = self.take(key) else { return Ok(Vec::new()) };
        let wrong = || self.wrong(key, &entry, "list of texts; write [\"a\", \"b\"]");
        let list = entry.value.as_array().ok_or_else(wrong)?;
        list.iter().map(|item| Ok((item.get_ref().as_str().ok_or_else(wrong)?, item.span()))).collect()
    }

    pub(super) fn table(&mut self, key: &str, what: &str) -> Result<Option<Table<'t>>, Fault> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        self.of_entry(key, &entry, what).map(Some)
    }

    pub(super) fn of_entry(&self, key: &str, entry: &Entry<'t>, what: &str) -> Result<Table<'t>, Fault> {
        let table = entry.value.as_table().ok_or_else(|| self.wrong(key, entry, "table"))?;
        Ok(Table::new(self.source, what, table, entry.key.clone()))
    }
}

/// A whole number that is not negative.
pub(super) fn whole(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
}

/// A span of time: a whole or decimal number and `ns`, `us`, `ms` or `s`, in nanoseconds.
pub(super) fn duration_ns(text: &str) -> Option<i64> {
    let split = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let ns = number.trim().parse::<f64>().ok()? * scale;
    (1.0..9e18).contains(&ns).then_some(ns.round() as i64)
}
