//! CDR → a tree of values.

use super::{CdrError, Tree, WideStrings};
use crate::library::Library;
use crate::model::{Element, Field, Named, Primitive, Shape, Struct, TypeName};

/// Bytes that may follow the last value.
const PADDING_MAX: usize = 3;

/// Decodes the bytes of a message of this resolved type, of either byte order.
///
/// # Errors
/// The type is not there or cannot travel, or the bytes are no value of it; the sentence names the field.
pub fn decode(library: &Library, name: &TypeName, bytes: &[u8], wide: WideStrings) -> Result<Tree, CdrError> {
    decode_some((library, name), bytes, wide, usize::MAX)
}

/// As [`decode`], but keeps at most so many elements of each array and sequence, for people who look at a picture's bytes. What
/// is left out of the tree is read, too, but bytes of numbers and truth values that are left out are not looked at.
///
/// # Errors
/// As [`decode`].
pub fn decode_some(
    (library, name): (&Library, &TypeName),
    bytes: &[u8],
    wide: WideStrings,
    elements_max: usize,
) -> Result<Tree, CdrError> {
    let defined = library
        .structure(name)
        .ok_or_else(|| CdrError::Type(format!("{name} is not a struct of these packages; check its name")))?;
    let (big_endian, body) = match bytes {
        [0, 0, _, _, body @ ..] => (true, body),
        [0, 1, _, _, body @ ..] => (false, body),
        [first, second, _, _, ..] => {
            let what =
                format!("its representation is {first:02x} {second:02x}, not plain CDR (00 00 or 00 01)");
            return Err(CdrError::value(what));
        }
        _ => return Err(CdrError::value("it is shorter than the header of four bytes")),
    };
    let mut decoder = Decoder { library, wide, body, at: 0, big_endian, elements_max };
    let tree = decoder.structure(defined)?;
    let left = body.len() - decoder.at;
    if left > PADDING_MAX {
        return Err(CdrError::value(format!(
            "{left} bytes are left over; the types of the two sides differ"
        )));
    }
    Ok(tree)
}

struct Decoder<'a> {
    library: &'a Library,
    wide: WideStrings,
    body: &'a [u8],
    at: usize,
    big_endian: bool,
    /// Kept of each array and sequence.
    elements_max: usize,
}

impl<'a> Decoder<'a> {
    fn structure(&mut self, defined: &Struct) -> Result<Tree, CdrError> {
        let mut fields = Vec::with_capacity(defined.fields.len());
        for field in &defined.fields {
            let value = self.field(field).map_err(|error| error.within(|| format!(".{}", field.name)))?;
            fields.push((field.name.clone(), value));
        }
        Ok(Tree::Fields(fields))
    }

    fn field(&mut self, field: &Field) -> Result<Tree, CdrError> {
        let count = match field.kind.shape {
            Shape::One => return self.element(&field.kind.element),
            Shape::Array(count) => count as usize,
            Shape::Sequence(bound) => {
                let count = self.number(4)? as usize;
                if let Some(bound) = bound
                    && count > bound as usize
                {
                    let what =
                        format!("the sequence has at most {bound} elements, and the bytes announce {count}");
                    return Err(CdrError::value(what));
                }
                count
            }
        };
        // Every element takes a byte at least, so that no announcement allocates more than the input justifies.
        let left = self.body.len() - self.at;
        if count > left {
            return Err(CdrError::value(format!("{count} elements are announced, with {left} bytes left")));
        }
        let kept = count.min(self.elements_max);
        let mut list = Vec::with_capacity(kept);
        for index in 0..kept {
            let element = self.element(&field.kind.element);
            list.push(element.map_err(|error| error.within(|| format!("[{index}]")))?);
        }
        if kept < count {
            self.skip(&field.kind.element, kept..count)?;
            list.push(Tree::More(count - kept));
        }
        Ok(Tree::List(list))
    }

    /// Passes over elements of a list.
    fn skip(&mut self, element: &Element, indices: std::ops::Range<usize>) -> Result<(), CdrError> {
        if let Element::Primitive(primitive) = element {
            let size = primitive.size_bytes();
            self.at = self.at.next_multiple_of(size).min(self.body.len());
            return self.take(size.saturating_mul(indices.len())).map(|_| ());
        }
        for index in indices {
            self.element(element).map_err(|error| error.within(|| format!("[{index}]")))?;
        }
        Ok(())
    }

    fn element(&mut self, element: &Element) -> Result<Tree, CdrError> {
        match element {
            Element::Primitive(primitive) => self.primitive(*primitive),
            Element::String { bound } => {
                let count = self.number(4)? as usize;
                let text = match self.take(count)?.split_last() {
                    Some((0, text)) => text,
                    Some(_) => return Err(CdrError::value("the string does not end with NUL")),
                    // Some writers send an empty string so.
                    None => &[],
                };
                if let Some(bound) = bound
                    && text.len() > *bound as usize
                {
                    let what = format!("the string has {} bytes, and its type at most {bound}", text.len());
                    return Err(CdrError::value(what));
                }
                if text.contains(&0) {
                    return Err(CdrError::value("the string contains NUL"));
                }
                let text =
                    std::str::from_utf8(text).map_err(|_| CdrError::value("the string is not UTF-8"))?;
                Ok(Tree::Text(text.to_owned()))
            }
            Element::WString { bound } => self.wide_string(*bound),
            Element::Named(name) => match self.library.get(name) {
                Some(Named::Struct(defined)) => self.structure(defined),
                Some(Named::Enum(defined)) => {
                    let number = self.number(4)?;
                    let variant =
                        usize::try_from(number).ok().and_then(|number| defined.variants.get(number));
                    let variant = variant.ok_or_else(|| {
                        CdrError::value(format!("{} has no variant {number}", defined.name))
                    })?;
                    Ok(Tree::Text(variant.0.clone()))
                }
                None => Err(CdrError::Type(format!("{name} is not resolved"))),
            },
        }
    }

    fn wide_string(&mut self, bound: Option<u32>) -> Result<Tree, CdrError> {
        self.wide.check()?;
        let count = self.number(4)? as usize;
        if let Some(bound) = bound
            && count > bound as usize
        {
            return Err(CdrError::value(format!(
                "the wstring has {count} code units, and its type at most {bound}"
            )));
        }
        let bytes = self.take(count.saturating_mul(2))?;
        let units = bytes.chunks_exact(2).map(|pair| {
            let pair = [pair[0], pair[1]];
            if self.big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
        });
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.map(Tree::Text).map_err(|_| CdrError::value("the wstring is not UTF-16"))
    }

    fn primitive(&mut self, primitive: Primitive) -> Result<Tree, CdrError> {
        let size = primitive.size_bytes();
        let bits = self.number(size)?;
        match (primitive, bits) {
            (Primitive::Bool, 2..) => Err(CdrError::value(format!("the bool is {bits}, neither 0 nor 1"))),
            _ => Ok(Tree::of_bits(primitive, bits)),
        }
    }

    /// The bits of an aligned number of 1, 2, 4 or 8 bytes.
    fn number(&mut self, size: usize) -> Result<u64, CdrError> {
        self.at = self.at.next_multiple_of(size).min(self.body.len());
        let bytes = self.take(size)?;
        let mut whole = [0; 8];
        if self.big_endian {
            whole[8 - size..].copy_from_slice(bytes);
            Ok(u64::from_be_bytes(whole))
        } else {
            whole[..size].copy_from_slice(bytes);
            Ok(u64::from_le_bytes(whole))
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], CdrError> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.body.len());
        let end = end.ok_or_else(|| CdrError::value("the bytes end in the middle of a value"))?;
        let taken = &self.body[self.at..end];
        self.at = end;
        Ok(taken)
    }
}
