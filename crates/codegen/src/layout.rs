//! How a message of fixed size lies in memory that programs share: where the rules of C put its fields.
//!
//! Every primitive is aligned to its own size, a struct to its greatest member; what lies between is padding, which generated
//! code writes out, so that Rust, C and C++ have the same struct. `docs/spec/formats.md`, section 2.

use std::collections::HashMap;

use crate::library::Library;
use crate::model::{Element, Field, Shape, TypeName};

/// Greatest size of such a message, in bytes.
pub const PLAIN_BYTES_MAX: u64 = 1 << 30;

/// Size and alignment in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    size: u64,
    alignment: u64,
}

/// A struct in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Size of the whole, in bytes.
    pub size_bytes: u64,
    /// 1, 2, 4 or 8.
    pub alignment_bytes: u64,
    /// Place of each field, in order.
    pub fields: Vec<FieldPlace>,
    /// Padding behind the last field, in bytes.
    pub tail_bytes: u64,
}

/// Offset and padding of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldPlace {
    /// Offset from the beginning of the struct, in bytes.
    pub offset_bytes: u64,
    /// Padding before the field, in bytes.
    pub padding_bytes: u64,
}

/// Layouts of the types of a library, each computed once.
#[derive(Debug)]
pub struct Layouts<'l> {
    library: &'l Library,
    known: HashMap<TypeName, Option<Layout>>,
}

impl<'l> Layouts<'l> {
    /// Layouts of resolved types.
    pub fn new(library: &'l Library) -> Self {
        Self { library, known: HashMap::new() }
    }

    /// The layout of a struct; `None` if it holds a text or a sequence, or is longer than [`PLAIN_BYTES_MAX`].
    pub fn of(&mut self, name: &TypeName) -> Option<&Layout> {
        if !self.known.contains_key(name) {
            let layout = self.compute(name);
            self.known.insert(name.clone(), layout);
        }
        self.known.get(name)?.as_ref()
    }

    fn compute(&mut self, name: &TypeName) -> Option<Layout> {
        let defined = self.library.structure(name)?;
        let (mut end, mut alignment) = (0u64, 1);
        let mut fields = Vec::new();
        for field in &defined.fields {
            let extent = self.field(field)?;
            let offset_bytes = end.next_multiple_of(extent.alignment);
            fields.push(FieldPlace { offset_bytes, padding_bytes: offset_bytes - end });
            end = offset_bytes + extent.size;
            alignment = extent.alignment.max(alignment);
            if end > PLAIN_BYTES_MAX {
                return None;
            }
        }
        let size_bytes = end.next_multiple_of(alignment);
        Some(Layout { size_bytes, alignment_bytes: alignment, fields, tail_bytes: size_bytes - end })
    }

    fn field(&mut self, field: &Field) -> Option<Extent> {
        let one = self.element(&field.kind.element)?;
        let count = match field.kind.shape {
            Shape::One => 1,
            Shape::Array(count) => u64::from(count),
            Shape::Sequence(_) => return None,
        };
        let size = one.size.checked_mul(count).filter(|size| *size <= PLAIN_BYTES_MAX)?;
        Some(Extent { size, ..one })
    }

    fn element(&mut self, element: &Element) -> Option<Extent> {
        match element {
            Element::Primitive(primitive) => {
                let size = primitive.size_bytes() as u64;
                Some(Extent { size, alignment: size })
            }
            Element::Named(inner) => {
                let layout = self.of(inner)?;
                Some(Extent { size: layout.size_bytes, alignment: layout.alignment_bytes })
            }
            Element::String { .. } | Element::WString { .. } => None,
        }
    }

    /// The CDR of a plain value, with its header; `None` if these are not the bytes of one.
    pub fn cdr(&mut self, name: &TypeName, plain: &[u8]) -> Option<Vec<u8>> {
        if self.of(name)?.size_bytes != plain.len() as u64 {
            return None;
        }
        let mut body = Vec::new();
        self.pack(name, plain, &mut body)?;
        Some([&[0, 1, 0, 0], body.as_slice()].concat())
    }

    fn pack(&mut self, name: &TypeName, plain: &[u8], body: &mut Vec<u8>) -> Option<()> {
        let places = self.of(name)?.fields.clone();
        let defined = self.library.structure(name)?;
        for (field, place) in defined.fields.iter().zip(places) {
            let extent = self.field(field)?;
            let offset = usize::try_from(place.offset_bytes).ok()?;
            let taken = plain.get(offset..)?.get(..usize::try_from(extent.size).ok()?)?;
            match &field.kind.element {
                Element::Named(inner) => {
                    let size = usize::try_from(self.of(inner)?.size_bytes).ok()?;
                    for one in taken.chunks_exact(size) {
                        self.pack(inner, one, body)?;
                    }
                }
                // An array without elements is not aligned.
                _ if taken.is_empty() => {}
                _ => {
                    body.resize(body.len().next_multiple_of(usize::try_from(extent.alignment).ok()?), 0);
                    body.extend_from_slice(taken);
                }
            }
        }
        Some(())
    }
}

/// The path of the first field below a type that may have more than one length.
pub fn first_of_any_length(library: &Library, name: &TypeName) -> Option<String> {
    let defined = library.structure(name)?;
    defined.fields.iter().find_map(|field| match (&field.kind.element, field.kind.shape) {
        (_, Shape::Sequence(_)) | (Element::String { .. } | Element::WString { .. }, _) => {
            Some(field.name.clone())
        }
        (Element::Named(inner), _) if library.measure(inner).is_some_and(|measure| !measure.is_fixed) => {
            first_of_any_length(library, inner).map(|rest| format!("{}.{rest}", field.name))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests;
