//! Values in the plain layout: the memory of a `repr(C)` struct of fixed size, in this machine's byte order.

use noctule_codegen::cdr::Tree;
use noctule_codegen::library::Library;
use noctule_codegen::model::{Element, FieldType, Named, Primitive, Shape, Struct, TypeName};

/// Why bytes are no value in the plain layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlainError {
    /// An enum, or a name without a definition.
    #[error("{0} is no struct")]
    NoStruct(TypeName),
    /// Not the bytes of this type.
    #[error("its plain layout has {size_bytes} bytes, and the sample has {sample_bytes}")]
    Size {
        /// Size of the type.
        size_bytes: usize,
        /// Size of the sample.
        sample_bytes: usize,
    },
    /// More structs in each other than are followed.
    #[error("it nests too deeply")]
    Deep,
    /// A sequence has no fixed size.
    #[error("a sequence has no plain layout")]
    Sequence,
    /// A string has no fixed size.
    #[error("a string has no plain layout")]
    Text,
    /// A field's type without a definition.
    #[error("{0} is not resolved")]
    Unresolved(TypeName),
    /// A field that does not lie within the sample.
    #[error("the bytes end in the middle of a value")]
    End,
}

/// Nesting that is followed; the generator's own limit is 60.
const DEPTH_MAX: usize = 64;

/// Decodes a value; lists are cut at `list_max`.
///
/// # Errors
/// The type has no fixed size, or the bytes are too few.
pub fn decode(library: &Library, name: &TypeName, bytes: &[u8], list_max: usize) -> Result<Tree, PlainError> {
    let defined = library.structure(name).ok_or_else(|| PlainError::NoStruct(name.clone()))?;
    let mut layout = Layout { library, bytes, list_max };
    let (_, size) = layout.shape_of_struct(defined, 0)?;
    if size != bytes.len() {
        return Err(PlainError::Size { size_bytes: size, sample_bytes: bytes.len() });
    }
    layout.structure(defined, 0)
}

struct Layout<'a> {
    library: &'a Library,
    bytes: &'a [u8],
    list_max: usize,
}

impl Layout<'_> {
    /// Alignment and size, bytes.
    fn shape_of_struct(&self, defined: &Struct, depth: usize) -> Result<(usize, usize), PlainError> {
        if depth > DEPTH_MAX {
            return Err(PlainError::Deep);
        }
        let (mut align, mut at) = (1, 0_usize);
        for field in &defined.fields {
            let (of_field, size) = self.shape_of_field(&field.kind, depth)?;
            align = align.max(of_field);
            at = at.next_multiple_of(of_field).saturating_add(size);
        }
        Ok((align, at.next_multiple_of(align)))
    }

    fn shape_of_field(&self, kind: &FieldType, depth: usize) -> Result<(usize, usize), PlainError> {
        let count = match kind.shape {
            Shape::One => 1,
            Shape::Array(count) => count as usize,
            Shape::Sequence(_) => return Err(PlainError::Sequence),
        };
        let (align, size) = self.shape_of(&kind.element, depth)?;
        Ok((align, size.saturating_mul(count)))
    }

    fn shape_of(&self, element: &Element, depth: usize) -> Result<(usize, usize), PlainError> {
        match element {
            Element::Primitive(primitive) => Ok((primitive.size_bytes(), primitive.size_bytes())),
            Element::Named(name) => match self.library.get(name) {
                Some(Named::Struct(defined)) => self.shape_of_struct(defined, depth + 1),
                Some(Named::Enum(_)) => Ok((4, 4)),
                None => Err(PlainError::Unresolved(name.clone())),
            },
            _ => Err(PlainError::Text),
        }
    }

    fn structure(&mut self, defined: &Struct, begin: usize) -> Result<Tree, PlainError> {
        let mut at = begin;
        let mut fields = Vec::with_capacity(defined.fields.len());
        for field in &defined.fields {
            let (align, size) = self.shape_of_field(&field.kind, 0)?;
            at = at.next_multiple_of(align);
            let value = match field.kind.shape {
                Shape::Array(count) => {
                    let each = size / (count as usize).max(1);
                    let elements = (0..(count as usize).min(self.list_max))
                        .map(|index| self.element(&field.kind.element, at + index * each));
                    Tree::List(elements.collect::<Result<_, _>>()?)
                }
                _ => self.element(&field.kind.element, at)?,
            };
            fields.push((field.name.clone(), value));
            at += size;
        }
        Ok(Tree::Fields(fields))
    }

    fn element(&mut self, element: &Element, at: usize) -> Result<Tree, PlainError> {
        match element {
            Element::Primitive(primitive) => self.primitive(*primitive, at),
            Element::Named(name) => match self.library.get(name).cloned() {
                Some(Named::Struct(defined)) => self.structure(&defined, at),
                _ => self.primitive(Primitive::U32, at),
            },
            _ => Err(PlainError::Text),
        }
    }

    fn primitive(&self, primitive: Primitive, at: usize) -> Result<Tree, PlainError> {
        let size = primitive.size_bytes();
        let bytes = self.bytes.get(at..at + size).ok_or(PlainError::End)?;
        let mut whole = [0_u8; 8];
        let bits = match cfg!(target_endian = "big") {
            true => {
                whole[8 - size..].copy_from_slice(bytes);
                u64::from_be_bytes(whole)
            }
            false => {
                whole[..size].copy_from_slice(bytes);
                u64::from_le_bytes(whole)
            }
        };
        Ok(Tree::of_bits(primitive, bits))
    }
}
