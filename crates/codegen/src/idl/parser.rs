//! Words of IDL → structs, by recursive descent.

mod annotations;

use std::collections::HashMap;
use std::ops::Range;

use super::tokens::{Kind, Token, Tokens};
use crate::diagnostic::{Fault, Place, Source};
use crate::model::{Constant, Element, Field, FieldType, Literal, Primitive, Shape, Struct, TypeName};
use crate::rosidl::literal::{self, LiteralError};
use annotations::Annotations;

/// Modules inside each other: a package, `msg`, `srv` or `action`, [`ON_DDS`], and the constants of a struct.
const MODULES_MAX: usize = 4;
/// The innermost module of types under their names on DDS: `pkg::msg::dds_::T_` is `pkg/msg/T` of ROS 2.
const ON_DDS: &str = "dds_";
/// Suffix of the module that holds the constants of a struct in what ROS 2 writes.
const CONSTANTS: &str = "_Constants";

/// An enum, a typedef or a constant by its full name.
#[derive(Debug, Clone)]
enum Meaning {
    Struct(TypeName),
    Alias(FieldType),
    Enum(Vec<String>),
    Constant(Literal),
}

/// Definitions that are known behind a file, and before the one that includes it.
#[derive(Debug, Default)]
pub(super) struct Known {
    names: HashMap<String, Meaning>,
    pub(super) structs: Vec<Struct>,
    /// Constants of the module `T_Constants`, by the path of `T`.
    constants: Vec<(String, Constant)>,
    pub(super) warnings: Vec<Fault>,
    /// Files that are included and found nowhere.
    pub(super) missing: Vec<String>,
}

pub(super) struct Parser<'s> {
    source: &'s Source,
    tokens: &'s [Token],
    at: usize,
    modules: Vec<String>,
    known: Known,
}

impl<'s> Parser<'s> {
    pub(super) fn new(source: &'s Source, tokens: &'s Tokens, known: Known) -> Self {
        Self { source, tokens: &tokens.words, at: 0, modules: Vec::new(), known }
    }

    pub(super) fn finish(self) -> Known {
        let mut known = self.known;
        for (owner, constant) in known.constants.drain(..) {
            if let Some(found) = known.structs.iter_mut().find(|found| found.name.as_str() == owner) {
                found.constants.push(constant);
            }
        }
        known
    }

    pub(super) fn file(&mut self) -> Result<(), Fault> {
        while self.token().kind != Kind::End {
            self.definition()?;
        }
        Ok(())
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn word(&self) -> &'s str {
        &self.source.text[self.token().span.clone()]
    }

    fn place(&self) -> Place {
        Place::new(self.source, self.token().span.clone())
    }

    /// Takes a word, whatever it is.
    fn next(&mut self) -> (&'s str, Range<usize>) {
        let taken = (self.word(), self.token().span.clone());
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        taken
    }

    /// Takes this sign or keyword if it is the next.
    fn accept(&mut self, word: &str) -> bool {
        let is_it = matches!(self.token().kind, Kind::Sign | Kind::Name) && self.word() == word;
        if is_it {
            self.next();
        }
        is_it
    }

    fn expect(&mut self, word: &str) -> Result<(), Fault> {
        if self.accept(word) {
            return Ok(());
        }
        let found = if self.token().kind == Kind::End { "the end of the file" } else { self.word() };
        Err(Fault::at(self.place(), format!("here stands {found}, and {word} is expected")))
    }

    fn name(&mut self) -> Result<(String, Range<usize>), Fault> {
        if self.token().kind != Kind::Name {
            return Err(Fault::at(self.place(), "a name is expected here"));
        }
        let (word, span) = self.next();
        // An underscore in front lets a keyword be a name, and is no part of it.
        Ok((word.strip_prefix('_').unwrap_or(word).to_owned(), span))
    }

    fn definition(&mut self) -> Result<(), Fault> {
        let annotations = self.annotations()?;
        let (word, span) = self.next();
        match word {
            "module" => return self.module(),
            "struct" => self.structure(annotations)?,
            "enum" => self.enumeration()?,
            "typedef" => self.alias()?,
            "const" => self.constant(annotations)?,
            _ => return Err(self.unsupported(word, span)),
        }
        self.expect(";")
    }

    fn unsupported(&self, word: &str, span: Range<usize>) -> Fault {
        let place = Place::new(self.source, span);
        match word {
            "union" | "map" | "any" | "valuetype" | "interface" | "fixed" | "bitset" | "bitmask"
            | "exception" | "native" | "wchar" => Fault::at(place, format!("{word} of IDL is not supported"))
                .help("use structs of numbers, strings, arrays and sequences"),
            _ => Fault::at(place, format!("{word} begins no definition"))
                .help("write module, struct, enum, typedef or const"),
        }
    }

    fn module(&mut self) -> Result<(), Fault> {
        let (name, span) = self.name()?;
        if self.modules.len() == MODULES_MAX {
            let what = format!("modules are nested more than {MODULES_MAX} deep");
            return Err(Fault::at(Place::new(self.source, span), what).help("use a package and msg"));
        }
        self.modules.push(name);
        self.expect("{")?;
        while !self.accept("}") {
            if self.token().kind == Kind::End {
                self.expect("}")?;
            }
            self.definition()?;
        }
        self.modules.pop();
        // Behind a module a semicolon is usual.
        self.accept(";");
        Ok(())
    }

    /// Full name of something in the modules that are open.
    fn full(&self, name: &str) -> String {
        self.modules.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("/")
    }

    fn define(&mut self, name: &str, span: Range<usize>, known: Meaning) -> Result<(), Fault> {
        if self.known.names.insert(self.full(name), known).is_some() {
            let what = format!("{name} is defined a second time");
            return Err(Fault::at(Place::new(self.source, span), what).help("remove one"));
        }
        Ok(())
    }

    fn type_name(&self, name: &str, span: Range<usize>) -> Result<TypeName, Fault> {
        match self.modules.as_slice() {
            [package] => Ok(TypeName::ros(package, "msg", name)),
            [package, kind] => Ok(TypeName::ros(package, kind, name)),
            [package, kind, inner] if inner == ON_DDS => {
                Ok(TypeName::ros(package, kind, name.strip_suffix('_').unwrap_or(name)))
            }
            _ => Err(Fault::at(Place::new(self.source, span), format!("{name} lies outside of a package"))
                .help("write module PACKAGE { module msg { … }; };")),
        }
    }

    fn structure(&mut self, annotations: Annotations) -> Result<(), Fault> {
        let (name, span) = self.name()?;
        let full = self.type_name(&name, span.clone())?;
        if self.word() == ";" {
            return Ok(()); // A declaration in advance.
        }
        let mut fields = Vec::new();
        if self.accept(":") {
            let place = self.place();
            let base = match self.scoped()? {
                Meaning::Struct(base) => self.known.structs.iter().find(|known| known.name == base),
                _ => None,
            };
            let base = base.ok_or_else(|| {
                Fault::at(place, "the base is no struct of this file").help("write its members out")
            })?;
            fields.clone_from(&base.fields);
        }
        self.define(&name, span.clone(), Meaning::Struct(full.clone()))?;
        let mut constants = Vec::new();
        self.expect("{")?;
        while !self.accept("}") {
            self.member(&mut fields, &mut constants)?;
        }
        for (index, field) in fields.iter().enumerate() {
            if fields[..index].iter().any(|other| other.name == field.name) {
                let place = field.place.clone().unwrap_or_else(|| self.place());
                return Err(
                    Fault::at(place, format!("{} is defined a second time", field.name)).help("remove one")
                );
            }
        }
        let mut defined = Struct::new(full, fields);
        defined.comment = annotations.comment;
        defined.constants = constants;
        defined.place = Some(Place::new(self.source, span));
        self.known.structs.push(defined);
        Ok(())
    }

    fn member(&mut self, fields: &mut Vec<Field>, constants: &mut Vec<Constant>) -> Result<(), Fault> {
        let annotations = self.annotations()?;
        let (kind, variants) = self.kind()?;
        loop {
            let (name, span) = self.name()?;
            let kind = self.dimensions(kind.clone())?;
            let place = Place::new(self.source, span);
            let default = match &annotations.default {
                Some(text) => Some(
                    literal::parse(&kind, text).map_err(|what| Fault::at(place.clone(), what.to_string()))?,
                ),
                None => None,
            };
            let is_named = |constant: &Constant, variant: &str| constant.name == variant;
            for (number, variant) in variants.iter().enumerate() {
                if !constants.iter().any(|constant| is_named(constant, variant)) {
                    let (value, element) =
                        (Literal::Integer(number as i128), Element::Primitive(Primitive::U32));
                    let name = variant.clone();
                    constants.push(Constant {
                        name,
                        element,
                        value,
                        comment: Vec::new(),
                        unit: None,
                        place: None,
                    });
                }
            }
            fields.push(Field {
                default,
                comment: annotations.comment.clone(),
                unit: annotations.unit.clone(),
                is_key: annotations.is_key,
                place: Some(place),
                ..Field::new(&name, kind.element, kind.shape)
            });
            if !self.accept(",") {
                break;
            }
        }
        self.expect(";")
    }

    /// Dimensions behind a name; several are one array, row by row, as their bytes are.
    fn dimensions(&mut self, kind: FieldType) -> Result<FieldType, Fault> {
        let mut count: u64 = 1;
        let place = self.place();
        let mut is_array = false;
        while self.accept("[") {
            is_array = true;
            count = count.saturating_mul(u64::from(self.size()?));
            self.expect("]")?;
        }
        let shape = match (is_array, kind.shape) {
            (false, shape) => return Ok(FieldType { shape, ..kind }),
            (true, Shape::One) => count,
            (true, Shape::Array(inner)) => count.saturating_mul(u64::from(inner)),
            (true, Shape::Sequence(_)) => {
                return Err(Fault::at(place, "an array of sequences is not supported")
                    .help("put the sequence into a struct"));
            }
        };
        let size = u32::try_from(shape)
            .map_err(|_| Fault::at(place, "the array has more elements than CDR can count"))?;
        Ok(FieldType { element: kind.element, shape: Shape::Array(size) })
    }

    /// A whole number from 1 on, written out or a constant.
    fn size(&mut self) -> Result<u32, Fault> {
        let place = self.place();
        let value = match self.value()? {
            Literal::Integer(value) => u32::try_from(value).ok().filter(|value| *value > 0),
            _ => None,
        };
        value.ok_or_else(|| Fault::at(place, format!("a size is a whole number from 1 to {}", u32::MAX)))
    }

    /// A type, and the variants if it is an enum.
    fn kind(&mut self) -> Result<(FieldType, Vec<String>), Fault> {
        let one = |element| Ok((FieldType { element, shape: Shape::One }, Vec::new()));
        let (start, place) = (self.at, self.place());
        if self.token().kind == Kind::Name {
            let (word, span) = self.next();
            if let Some(primitive) = self.primitive(word)? {
                return one(Element::Primitive(primitive));
            }
            match word {
                "string" | "wstring" => {
                    let bound = if self.accept("<") { Some(self.size()?) } else { None };
                    if bound.is_some() {
                        self.expect(">")?;
                    }
                    return one(if word == "string" {
                        Element::String { bound }
                    } else {
                        Element::WString { bound }
                    });
                }
                "sequence" => return self.sequence(place),
                "union" | "map" | "any" | "fixed" | "wchar" => return Err(self.unsupported(word, span)),
                _ => self.at = start,
            }
        }
        match self.scoped()? {
            Meaning::Struct(name) => one(Element::Named(name)),
            Meaning::Alias(kind) => Ok((kind, Vec::new())),
            Meaning::Enum(variants) => {
                let kind = FieldType { element: Element::Primitive(Primitive::U32), shape: Shape::One };
                Ok((kind, variants))
            }
            Meaning::Constant(_) => Err(Fault::at(place, "a constant is no type")),
        }
    }

    fn sequence(&mut self, place: Place) -> Result<(FieldType, Vec<String>), Fault> {
        self.expect("<")?;
        let nested = || {
            Fault::at(place.clone(), "a sequence of arrays or of sequences is not supported")
                .help("put the inner one into a struct")
        };
        if self.word() == "sequence" {
            return Err(nested());
        }
        let (inner, variants) = self.kind()?;
        let bound = if self.accept(",") { Some(self.size()?) } else { None };
        self.expect(">")?;
        if inner.shape != Shape::One {
            return Err(nested());
        }
        Ok((FieldType { element: inner.element, shape: Shape::Sequence(bound) }, variants))
    }

    /// The primitive that begins with this word, of which there may be more.
    fn primitive(&mut self, word: &str) -> Result<Option<Primitive>, Fault> {
        Ok(Some(match word {
            "boolean" => Primitive::Bool,
            "octet" => Primitive::Byte,
            "char" => Primitive::Char,
            "int8" => Primitive::I8,
            "uint8" => Primitive::U8,
            "short" | "int16" => Primitive::I16,
            "uint16" => Primitive::U16,
            "int32" => Primitive::I32,
            "uint32" => Primitive::U32,
            "int64" => Primitive::I64,
            "uint64" => Primitive::U64,
            "float" => Primitive::F32,
            "double" => Primitive::F64,
            "long" if self.word() == "double" => {
                return Err(Fault::at(self.place(), "long double of IDL is not supported").help("use double"));
            }
            "long" if self.accept("long") => Primitive::I64,
            "long" => Primitive::I32,
            "unsigned" if self.accept("short") => Primitive::U16,
            "unsigned" => {
                self.expect("long")?;
                if self.accept("long") { Primitive::U64 } else { Primitive::U32 }
            }
            _ => return Ok(None),
        }))
    }

    /// Resolves a name with `::` at this place. A struct of another file is known by its whole name alone.
    fn scoped(&mut self) -> Result<Meaning, Fault> {
        let place = self.place();
        let is_absolute = self.accept("::");
        let mut parts = vec![self.name()?.0];
        while self.accept("::") {
            parts.push(self.name()?.0);
        }
        let depths = if is_absolute { 0..=0 } else { 0..=self.modules.len() };
        for depth in depths.rev() {
            let full =
                self.modules[..depth].iter().chain(&parts).map(String::as_str).collect::<Vec<_>>().join("/");
            if let Some(known) = self.known.names.get(&full) {
                return Ok(known.clone());
            }
        }
        match parts.as_slice() {
            [package, kind, name] if matches!(kind.as_str(), "msg" | "srv" | "action") => {
                Ok(Meaning::Struct(TypeName::ros(package, kind, name)))
            }
            [package, kind, inner, name] if inner == ON_DDS => {
                Ok(Meaning::Struct(TypeName::ros(package, kind, name.strip_suffix('_').unwrap_or(name))))
            }
            _ => {
                let what = format!("{} is defined nowhere before", parts.join("::"));
                let help = match self.known.missing.first() {
                    Some(file) => format!(
                        "{file} is included and found nowhere: put it beside this file, or add its folder to search"
                    ),
                    None => {
                        "define it first; a type of another file is written package::msg::Name".to_owned()
                    }
                };
                Err(Fault::at(place, what).help(help))
            }
        }
    }

    fn enumeration(&mut self) -> Result<(), Fault> {
        let (name, span) = self.name()?;
        let mut variants: Vec<String> = Vec::new();
        self.expect("{")?;
        loop {
            let annotations = self.annotations()?;
            if annotations.has_value {
                return Err(
                    Fault::at(self.place(), "@value is not supported").help("list the variants from 0 on")
                );
            }
            variants.push(self.name()?.0);
            if !self.accept(",") || self.word() == "}" {
                break;
            }
        }
        self.expect("}")?;
        for (number, variant) in variants.iter().enumerate() {
            self.define(variant, span.clone(), Meaning::Constant(Literal::Integer(number as i128)))?;
        }
        self.define(&name, span, Meaning::Enum(variants))
    }

    fn alias(&mut self) -> Result<(), Fault> {
        let (kind, variants) = self.kind()?;
        loop {
            let (name, span) = self.name()?;
            let kind = self.dimensions(kind.clone())?;
            let known =
                if variants.is_empty() { Meaning::Alias(kind) } else { Meaning::Enum(variants.clone()) };
            self.define(&name, span, known)?;
            if !self.accept(",") {
                return Ok(());
            }
        }
    }

    fn constant(&mut self, annotations: Annotations) -> Result<(), Fault> {
        let (kind, _) = self.kind()?;
        let (name, span) = self.name()?;
        self.expect("=")?;
        let place = self.place();
        let value = self.value()?;
        let value = fitted(&kind, value).map_err(|what| Fault::at(place, what.to_string()))?;
        self.define(&name, span.clone(), Meaning::Constant(value.clone()))?;
        let owner = self.modules.last().and_then(|module| module.strip_suffix(CONSTANTS));
        if let Some(owner) = owner {
            let around = self.modules[..self.modules.len() - 1].iter().map(String::as_str);
            let path: Vec<&str> = around.filter(|module| *module != ON_DDS).chain([owner]).collect();
            let place = Some(Place::new(self.source, span));
            let Annotations { comment, unit, .. } = annotations;
            self.known.constants.push((
                path.join("/"),
                Constant { name, element: kind.element, value, comment, unit, place },
            ));
        }
        Ok(())
    }

    /// A literal or the name of a constant, with a sign in front.
    fn value(&mut self) -> Result<Literal, Fault> {
        let (place, is_negative) = (self.place(), self.accept("-"));
        if !is_negative {
            self.accept("+");
        }
        let expression =
            |place: Place| Err(Fault::at(place, "expressions are not supported").help("write the value"));
        if self.token().kind == Kind::Sign && matches!(self.word(), "(" | "~" | "-" | "+") {
            return expression(self.place());
        }
        let token = self.token().clone();
        let value = match token.kind {
            Kind::Number => {
                let word = self.next().0;
                number(word).ok_or_else(|| Fault::at(place.clone(), format!("{word} is no number")))?
            }
            Kind::Text(first) => {
                self.next();
                let mut text = first;
                while let Kind::Text(more) = self.token().kind.clone() {
                    text.push_str(&more);
                    self.next();
                }
                Literal::Text(text)
            }
            Kind::Character(letter) => {
                self.next();
                let code = letter.bytes().next().filter(|_| letter.len() == 1);
                Literal::Integer(i128::from(
                    code.ok_or_else(|| Fault::at(place.clone(), "a char is one byte"))?,
                ))
            }
            _ if self.accept("TRUE") => Literal::Bool(true),
            _ if self.accept("FALSE") => Literal::Bool(false),
            _ => match self.scoped()? {
                Meaning::Constant(value) => value,
                _ => return Err(Fault::at(place, "a value is expected here")),
            },
        };
        let is_operator = matches!(self.word(), "+" | "-" | "*" | "/" | "%" | "|" | "&" | "^" | "<");
        if is_operator && self.token().kind == Kind::Sign {
            return expression(self.place());
        }
        match (is_negative, value) {
            (true, Literal::Integer(value)) => Ok(Literal::Integer(-value)),
            (true, Literal::Float(value)) => Ok(Literal::Float(-value)),
            (true, _) => Err(Fault::at(place, "only a number has a sign")),
            (false, value) => Ok(value),
        }
    }
}

/// A number of C: decimal, 0x, a leading 0 for octal, or floating-point with `.`, `e`, `f`, `d`.
fn number(word: &str) -> Option<Literal> {
    let lower = word.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        return i128::from_str_radix(digits, 16).ok().map(Literal::Integer);
    }
    if lower.contains(['.', 'e', 'f', 'd']) {
        let digits = lower.trim_end_matches(['f', 'd', 'l']);
        return digits.parse().ok().map(Literal::Float);
    }
    let digits = lower.trim_end_matches(['u', 'l']);
    let radix = if digits.len() > 1 && digits.starts_with('0') { 8 } else { 10 };
    i128::from_str_radix(digits, radix).ok().map(Literal::Integer)
}

/// A value as one of this type.
fn fitted(kind: &FieldType, value: Literal) -> Result<Literal, LiteralError> {
    let text = match value {
        Literal::Integer(value) => value.to_string(),
        Literal::Float(value) => format!("{value:?}"),
        Literal::Bool(value) => value.to_string(),
        Literal::Text(text) if matches!(kind.element, Element::String { .. }) => {
            return Ok(Literal::Text(text));
        }
        Literal::Text(_) | Literal::List(_) => return Err(LiteralError::Text(kind.clone())),
    };
    literal::parse(kind, &text)
}
