//! Tables of events and reasons, each written once.

/// Writes reasons once: as variants, as the words of a file, and as parts of a sentence.
#[macro_export]
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal, $sentence:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = concat!("It ", $sentence, ".")] $variant,)* }

        impl $name {
            /// Each as `trigger` in a file, and as the end of a sentence.
            pub const WORDS: &[(&'static str, &'static str)] = &[$(($word, $sentence)),*];

            /// As `trigger` in a file.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Which one a file means; `None` if it is none.
            pub fn of_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }

            /// As the end of a sentence.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)* }
            }
        }

        impl $crate::Value for $name {
            fn put(&self, key: &'static str, put: &mut $crate::Put<'_>) {
                put(key, $crate::Field::Word(self.word()));
            }
        }
    };
}

/// Writes the events of a core once: as variants, as names and fields of a file, and as sentences. In a sentence `{field}` is replaced by
/// the value of a field, and `{trigger}` by the reason in words.
#[macro_export]
macro_rules! events {
    (
        $(#[$doc:meta])* $name:ident of $schema:literal with [$($reason:ty),*] {
            $($variant:ident = $word:literal, $sentence:literal { $($(#[$about:meta])* $field:ident: $type:ty),* };)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = concat!("`", $word, "`: ", $sentence, ".")] $variant { $($(#[$about])* $field: $type),* },)* }

        /// Their names and sentences.
        pub const SCHEMA: $crate::Schema = $crate::Schema {
            name: $schema,
            sentences: &[$(($word, $sentence)),*],
            reasons: &[$(<$reason>::WORDS),*],
        };

        impl $crate::Event for $name {
            fn schema(&self) -> &'static str {
                $schema
            }

            fn name(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $word,)* }
            }

            fn fields(&self, put: &mut $crate::Put<'_>) {
                match self {
                    $(Self::$variant { $($field),* } => { $($crate::Value::put($field, stringify!($field), put);)* })*
                }
            }
        }
    };
}

#[cfg(test)]
#[allow(unreachable_pub)] // the tables of cores are public
mod tests {
    use crate::{Event as _, Field};

    reasons! {
        /// Why one goes.
        Why {
            Tired = "tired", "has no strength left";
            Bored = "bored", "has nothing to do";
        }
    }

    events! {
        /// Of a test.
        Event of "test" with [Why] {
            Went = "gone", "{node} has gone after {hours} h: it {trigger}" {
                /// Its name.
                node: String,
                /// How long it stayed.
                hours: u64,
                /// Why.
                trigger: Why
            };
        }
    }

    #[test]
    fn an_event_and_its_fields_in_a_file_are_the_same_sentence() {
        let event = Event::Went { node: "node 1".into(), hours: 3, trigger: Why::Bored };
        assert_eq!((event.schema(), event.name()), ("test", "gone"));
        let mut keys = Vec::new();
        event.fields(&mut |key, _| keys.push(key));
        assert_eq!(keys, ["node", "hours", "trigger"]);
        let sentence = "node 1 has gone after 3 h: it has nothing to do";
        assert_eq!(SCHEMA.sentence_of(&event).as_deref(), Some(sentence));
        let of = |trigger| {
            move |key: &str| match key {
                "node" => Some(Field::Word("node 1")),
                "hours" => Some(Field::Number(3)),
                "trigger" => Some(Field::Word(trigger)),
                _ => None,
            }
        };
        assert_eq!(SCHEMA.sentence("gone", &of("bored")).as_deref(), Some(sentence));
        assert_eq!(SCHEMA.sentence("gone", &of("angry")), None, "no such reason");
        assert_eq!(SCHEMA.sentence("came", &of("bored")), None, "no such event");
        assert_eq!(SCHEMA.sentence("gone", &|_| None), None, "no fields");
        assert_eq!(Why::of_word("tired").map(Why::sentence), Some("has no strength left"));
    }
}
