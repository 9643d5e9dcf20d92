//! The lines of a `.msg`, or of one part of a `.srv` or `.action`: fields, constants, comments.

use std::collections::HashMap;
use std::ops::Range;

use super::{literal, rules};
use crate::diagnostic::{Fault, Faults, Place, Source};
use crate::model::{Constant, Element, Field, FieldType, Primitive, Shape, Struct, TypeName};

/// Reads one part of a file into a struct of this name.
pub(super) fn parse(source: &Source, part: Range<usize>, name: TypeName, faults: &mut Faults) -> Struct {
    let text = &source.text[part.clone()];
    let mut parser = Parser {
        source,
        package: name.package(),
        fields: Vec::new(),
        constants: Vec::new(),
        waiting: Vec::new(),
        last: None,
        faults,
    };
    let head = text.lines().take_while(|line| line.starts_with('#')).count();
    let mut comment: Vec<String> = text.lines().take(head).map(uncommented).collect();
    for line in text.lines().skip(head) {
        parser.line(line);
    }
    parser.refuse_duplicates();
    let Parser { mut fields, mut constants, .. } = parser;
    tidy(&mut comment);
    for field in &mut fields {
        field.unit = take_unit(&mut field.comment);
    }
    for constant in &mut constants {
        constant.unit = take_unit(&mut constant.comment);
    }
    let mut defined = Struct::new(name, fields);
    defined.constants = constants;
    defined.comment = comment;
    defined.place = Some(Place::new(source, part.start..part.start));
    defined
}

/// Item that an indented comment belongs to.
#[derive(Clone, Copy)]
enum Last {
    Field,
    Constant,
}

struct Parser<'a> {
    source: &'a Source,
    package: &'a str,
    fields: Vec<Field>,
    constants: Vec<Constant>,
    /// Comments of the element that follows.
    waiting: Vec<String>,
    last: Option<Last>,
    faults: &'a mut Faults,
}

impl Parser<'_> {
    /// Where a part of the text lies.
    fn place(&self, part: &str) -> Place {
        let start = (part.as_ptr() as usize).saturating_sub(self.source.text.as_ptr() as usize);
        Place::new(self.source, start..start + part.len())
    }

    fn line(&mut self, line: &str) {
        let line = line.trim_end();
        let (code, comment) = match line.find('#') {
            Some(at) => (&line[..at], Some(uncommented(&line[at..]))),
            None => (line, None),
        };
        if let Some(comment) = comment {
            if code.trim().is_empty() && !code.is_empty() {
                return self.append(comment);
            }
            self.waiting.push(comment);
        }
        let code = code.trim();
        if !code.is_empty()
            && let Err(fault) = self.element(code)
        {
            self.faults.push(fault);
        }
    }

    /// An indented comment continues that of the element before.
    fn append(&mut self, comment: String) {
        let lines = match self.last {
            Some(Last::Field) => self.fields.last_mut().map(|field| &mut field.comment),
            Some(Last::Constant) => self.constants.last_mut().map(|constant| &mut constant.comment),
            None => None,
        };
        if let Some(lines) = lines {
            lines.push(comment);
        }
    }

    /// `TYPE NAME [DEFAULT]` or `TYPE NAME = VALUE`.
    fn element(&mut self, code: &str) -> Result<(), Fault> {
        let comment = std::mem::take(&mut self.waiting);
        let (type_text, rest) = code.split_once([' ', '\t']).ok_or_else(|| {
            Fault::at(self.place(code), format!("{code} is a type without a name"))
                .help("write TYPE NAME, TYPE NAME DEFAULT, or TYPE NAME = VALUE")
        })?;
        let rest = rest.trim_start();
        let name_end = rest.find([' ', '\t', '=']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(name_end);
        let rest = rest.trim_start();
        let kind = self.kind(type_text)?;
        match rest.strip_prefix('=') {
            Some(value) => self.constant((type_text, kind), name, value.trim(), comment),
            None => self.field((type_text, kind), name, rest, comment),
        }
    }

    fn field(
        &mut self,
        (type_text, kind): (&str, FieldType),
        name: &str,
        default: &str,
        comment: Vec<String>,
    ) -> Result<(), Fault> {
        if !rules::is_field_name(name) {
            let what = format!("\"{name}\" is not a name that a field may have");
            return Err(Fault::at(self.place(name), what).help(
                "a field's name has lower-case letters, digits and single underscores, begins with a letter and does not end with _",
            ));
        }
        let value = if default.is_empty() { None } else { Some(literal::parse(&kind, default)) };
        let default = value.transpose().map_err(|what| Fault::at(self.place(default), what.to_string()))?;
        let (place, type_place) = (Some(self.place(name)), Some(self.place(type_text)));
        let FieldType { element, shape } = kind;
        self.fields.push(Field { default, comment, place, type_place, ..Field::new(name, element, shape) });
        self.last = Some(Last::Field);
        Ok(())
    }

    fn constant(
        &mut self,
        (type_text, kind): (&str, FieldType),
        name: &str,
        value: &str,
        comment: Vec<String>,
    ) -> Result<(), Fault> {
        if kind.shape != Shape::One || matches!(kind.element, Element::Named(_)) {
            let what = format!("a constant cannot be of type {type_text}");
            return Err(
                Fault::at(self.place(type_text), what).help("a constant is a number, a bool or a string")
            );
        }
        if !rules::is_constant_name(name) {
            let what = format!("\"{name}\" is not a name that a constant may have");
            return Err(Fault::at(self.place(name), what).help(
                "a constant's name has upper-case letters, digits and single underscores, begins with a letter and does not end with _",
            ));
        }
        let parsed =
            literal::parse(&kind, value).map_err(|what| Fault::at(self.place(value), what.to_string()))?;
        let place = Some(self.place(name));
        let name = name.to_owned();
        self.constants.push(Constant {
            name,
            element: kind.element,
            value: parsed,
            comment,
            unit: None,
            place,
        });
        self.last = Some(Last::Constant);
        Ok(())
    }

    fn kind(&self, text: &str) -> Result<FieldType, Fault> {
        let Some(inner) = text.strip_suffix(']') else {
            return Ok(FieldType { element: self.base(text)?, shape: Shape::One });
        };
        let (base, size) = inner.rsplit_once('[').ok_or_else(|| {
            Fault::at(self.place(text), format!("{text} has a ] without a ["))
                .help("write T[], T[4] or T[<=4]")
        })?;
        let shape = match size.strip_prefix("<=") {
            _ if size.is_empty() => Shape::Sequence(None),
            Some(bound) => Shape::Sequence(Some(self.size(text, bound)?)),
            None => Shape::Array(self.size(text, size)?),
        };
        if base.ends_with(']') {
            return Err(Fault::at(
                self.place(text),
                format!("{text} is an array of arrays, which .msg does not have"),
            )
            .help("put the inner array into a message of its own"));
        }
        Ok(FieldType { element: self.base(base)?, shape })
    }

    fn size(&self, whole: &str, digits: &str) -> Result<u32, Fault> {
        let size = digits.parse::<u32>().ok().filter(|size| *size > 0);
        size.ok_or_else(|| {
            Fault::at(
                self.place(whole),
                format!("\"{digits}\" is not a size; it is a whole number from 1 to {}", u32::MAX),
            )
        })
    }

    fn base(&self, text: &str) -> Result<Element, Fault> {
        if let Some(primitive) = primitive(text) {
            return Ok(Element::Primitive(primitive));
        }
        let (word, bound) = match text.split_once("<=") {
            Some((word @ ("string" | "wstring"), digits)) => (word, Some(self.size(text, digits)?)),
            _ => (text, None),
        };
        match word {
            "string" => return Ok(Element::String { bound }),
            "wstring" => return Ok(Element::WString { bound }),
            _ => {}
        }
        let ros1 = |what: &str, write: &str| Err(Fault::at(self.place(text), what).help(write));
        match text {
            "time" => return ros1("time is a type of ROS 1", "write builtin_interfaces/Time"),
            "duration" => return ros1("duration is a type of ROS 1", "write builtin_interfaces/Duration"),
            "Header" if self.package != "std_msgs" => {
                return ros1("Header without its package is a type of ROS 1", "write std_msgs/Header");
            }
            _ => {}
        }
        self.named(text)
    }

    fn named(&self, text: &str) -> Result<Element, Fault> {
        let parts: Vec<&str> = text.split('/').collect();
        let (package, kind, name) = match parts.as_slice() {
            [name] => (self.package, "msg", *name),
            [package, name] => (*package, "msg", *name),
            [package, kind @ ("msg" | "srv" | "action"), name] => (*package, *kind, *name),
            _ => ("", "msg", ""),
        };
        if rules::is_field_name(package) && rules::is_referred_type_name(name) {
            return Ok(Element::Named(TypeName::ros(package, kind, name)));
        }
        let what = format!("{text} is not a type");
        let help = match similar(text) {
            Some(word) => format!("write {word}"),
            None => "a type is a primitive (bool, int32, float64, string …), Name or package/Name".to_owned(),
        };
        Err(Fault::at(self.place(text), what).help(help))
    }

    fn refuse_duplicates(&mut self) {
        let mut seen: HashMap<&str, &Place> = HashMap::new();
        let fields = self.fields.iter().map(|field| (&field.name, &field.place));
        let constants = self.constants.iter().map(|constant| (&constant.name, &constant.place));
        for (name, place) in fields.chain(constants) {
            let Some(place) = place else { continue };
            if let Some(first) = seen.insert(name, place) {
                let line = first.source.line(first.span.start);
                let what = format!("{name} is defined a second time; the first is in line {line}");
                self.faults.push(Fault::at(place.clone(), what).help("remove one, or give it another name"));
            }
        }
    }
}

fn primitive(word: &str) -> Option<Primitive> {
    Some(match word {
        "bool" => Primitive::Bool,
        "byte" => Primitive::Byte,
        // Of rosidl: the type of C is another.
        "char" | "uint8" => Primitive::U8,
        "int8" => Primitive::I8,
        "int16" => Primitive::I16,
        "uint16" => Primitive::U16,
        "int32" => Primitive::I32,
        "uint32" => Primitive::U32,
        "int64" => Primitive::I64,
        "uint64" => Primitive::U64,
        "float32" => Primitive::F32,
        "float64" => Primitive::F64,
        _ => return None,
    })
}

/// The type of ROS 2 that another language's name means.
fn similar(word: &str) -> Option<&'static str> {
    Some(match word {
        "float" | "f32" => "float32",
        "double" | "f64" => "float64",
        "boolean" => "bool",
        "int" | "long" | "i32" => "int32",
        "unsigned" | "uint" | "u32" => "uint32",
        "short" => "int16",
        "octet" => "byte",
        "str" | "String" => "string",
        "int8_t" => "int8",
        "uint8_t" | "u8" => "uint8",
        "uint16_t" | "u16" => "uint16",
        "uint64_t" | "u64" => "uint64",
        _ => return None,
    })
}

fn uncommented(line: &str) -> String {
    let text = line.trim_end().trim_start_matches('#');
    text.strip_prefix(' ').unwrap_or(text).replace('\t', " ")
}

/// Takes the unit out of a comment: what stands in its only brackets, without a comma (that is a range).
fn take_unit(comment: &mut Vec<String>) -> Option<String> {
    let mut found: Option<(usize, Range<usize>)> = None;
    for (index, line) in comment.iter().enumerate() {
        for (open, _) in line.match_indices('[') {
            let Some(length) = line[open..].find(']') else { continue };
            let inner = &line[open + 1..open + length];
            let is_unit = !inner.is_empty() && !inner.contains([',', '[']) && !inner.starts_with('@');
            if is_unit && found.replace((index, open..open + length + 1)).is_some() {
                tidy(comment);
                return None;
            }
        }
    }
    let unit = found.map(|(index, span)| {
        let line = &mut comment[index];
        let unit = line[span.start + 1..span.end - 1].trim().to_owned();
        line.replace_range(span, "");
        *line = line.trim().to_owned();
        unit
    });
    tidy(comment);
    unit.filter(|unit| !unit.is_empty())
}

/// No empty line at the beginning or the end.
fn tidy(comment: &mut Vec<String>) {
    while comment.last().is_some_and(|line| line.trim().is_empty()) {
        comment.pop();
    }
    let empty = comment.iter().take_while(|line| line.trim().is_empty()).count();
    comment.drain(..empty);
}
