//! A type of Rust says what it is made of, as the text of [`description`](crate::description).

use std::collections::BTreeMap;

/// Collects the definitions of a type of Rust and of all that it refers to, each once.
#[derive(Debug, Default)]
pub struct Describer {
    order: Vec<String>,
    written: BTreeMap<String, String>,
}

impl Describer {
    /// Adds a struct if it is new; `fields` gives name and word of each field. Gives its word.
    pub fn structure(
        &mut self,
        name: &str,
        fields: impl FnOnce(&mut Describer) -> Vec<(&'static str, String)>,
    ) -> String {
        if !self.written.contains_key(name) {
            self.order.push(name.to_owned());
            self.written.insert(name.to_owned(), String::new());
            let mut text = format!("struct {name}\n");
            for (field, word) in fields(self) {
                text += &format!(" {word} {}\n", field.strip_prefix("r#").unwrap_or(field));
            }
            self.written.insert(name.to_owned(), text);
        }
        name.to_owned()
    }

    /// All of it, in the order in which types were met.
    pub fn finish(self) -> String {
        self.order.iter().filter_map(|name| self.written.get(name)).map(String::as_str).collect()
    }
}
