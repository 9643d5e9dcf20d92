//! How a field looks in each language: names that are no keywords, types, default values.
//!
//! Each language adds an object of its own to a field of the description that templates receive; a template of a further
//! language can do with what stands beside them.

pub(crate) mod c;
pub(crate) mod cpp;
pub(crate) mod idl;
pub(crate) mod python;
pub(crate) mod rust;
pub(crate) mod simulink;

/// A name of a definition that is no keyword of these languages: with an underscore behind it if it is one.
fn escaped(name: &str, keywords: &[&str]) -> String {
    if keywords.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// A text between quotes, as C, C++ and Python read it: everything but printable ASCII in octal.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            // A question mark may begin a trigraph of C.
            b' '..=b'~' if byte != b'?' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}

/// Digits that every language reads as the same floating-point number.
fn float(value: f64, names: [&str; 3]) -> String {
    let [nan, infinity, minus_infinity] = names;
    if value.is_nan() {
        nan.to_owned()
    } else if value.is_infinite() {
        (if value > 0.0 { infinity } else { minus_infinity }).to_owned()
    } else {
        format!("{value:?}")
    }
}

/// Keywords of C99, of C++17 and C++20, of GNU's dialects, and what their headers define as macros.
const C_KEYWORDS: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "compl",
    "concept",
    "const",
    "consteval",
    "const_cast",
    "constexpr",
    "constinit",
    "continue",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "reinterpret_cast",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "errno",
    "stdin",
    "stdout",
    "stderr",
    "assert",
    "signal",
    "linux",
    "unix",
    "i386",
    "int8_t",
    "uint8_t",
    "int16_t",
    "uint16_t",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
    "size_t",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_same_in_every_language() {
        assert_eq!(quoted("a\"\\\n?é"), "\"a\\\"\\\\\\012\\077\\303\\251\"");
        assert_eq!(escaped("namespace", C_KEYWORDS), "namespace_");
        assert_eq!(float(0.1, ["", "", ""]), "0.1");
        assert_eq!(float(1e300, ["", "", ""]), "1e300");
    }
}
