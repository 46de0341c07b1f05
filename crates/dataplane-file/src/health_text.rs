//! The grammar of a service function's health check, as serde types.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use document::{Items, Place, Step, Time};
use model::dataplane::Health;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};

const DEFAULT_INTERVAL: Duration = Duration::from_millis(200);
/// A command takes some time on a busy machine, regardless of its interval.
const TIMEOUT: Duration = Duration::from_millis(300);
/// With the values above, a function is withdrawn within 0.9 s after its check starts to hang.
const FALL: u32 = 2;
const RISE: u32 = 3;
/// With shorter intervals, the checks would use the whole machine.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
const MAX_INTERVAL: Duration = Duration::from_secs(3600);
const MAX_COUNT: u32 = 1000;
/// Characters that only a shell interprets.
const SHELL: &[char] = &[
    '|', '&', ';', '<', '>', '$', '`', '(', ')', '*', '?', '~', '\'', '"', '\\', '\n', '#', '{',
    '}',
];

/// Health check of a service function: a command that reports success by exit status 0 within the
/// timeout.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Health")]
pub struct HealthText {
    /// The command.
    run: CommandText,
    /// Interval between the starts of two runs; 200ms if absent.
    every: Option<Time>,
    /// Maximum duration of a run; if absent, the value of `every`, but at least 300ms.
    timeout: Option<Time>,
    /// Number of consecutive failures after which the SID's route is withdrawn; 2 if absent.
    #[schemars(range(min = 1, max = 1000))]
    fall: Option<u32>,
    /// Number of consecutive successes after which the route is restored; 3 if absent.
    #[schemars(range(min = 1, max = 1000))]
    rise: Option<u32>,
}

/// A command: a list of words, or one text with words separated by blanks.
#[derive(Debug)]
enum CommandText {
    Words(Vec<String>),
    Text(String),
}

impl<'de> Deserialize<'de> for CommandText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = CommandText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command such as `nft list table inet fw01`, or a list of its words")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CommandText, E> {
                Ok(CommandText::Text(text.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<CommandText, A::Error> {
                let words = Items::<String>::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(CommandText::Words(words.0))
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for CommandText {
    fn schema_name() -> Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let words = generator.subschema_for::<Items<String>>();
        json_schema!({"anyOf": [{"type": "string"}, words]})
    }
}

impl HealthText {
    /// Returns the health check. Errors are reported at `path`.
    pub fn resolve(&self, place: &mut Place<'_>, path: &[Step]) -> Health {
        let at = |key: &'static str| [path, &[Step::from(key)]].concat();
        let run = self.run.resolve(place, &at("run"));
        let mut time = |key: &'static str, given: Option<Time>, absent: Duration| {
            let Some(Time(given)) = given else { return absent };
            if !(MIN_INTERVAL..=MAX_INTERVAL).contains(&given) {
                let message = format!("{given:?} is not possible here");
                place.value(&at(key), message, "write 10ms to 1h");
            }
            given
        };
        let every = time("every", self.every, DEFAULT_INTERVAL);
        let timeout = time("timeout", self.timeout, every.max(TIMEOUT));
        let mut times = |key: &'static str, given: Option<u32>, absent: u32| {
            let given = given.unwrap_or(absent);
            if !(1..=MAX_COUNT).contains(&given) {
                let message = format!("{given} times in a row are not possible");
                place.value(&at(key), message, &format!("write 1 to {MAX_COUNT}"));
            }
            given
        };
        let (fall, rise) = (times("fall", self.fall, FALL), times("rise", self.rise, RISE));
        Health { run, every, timeout, fall, rise }
    }
}

impl CommandText {
    fn resolve(&self, place: &mut Place<'_>, path: &[Step]) -> Vec<String> {
        let words: Vec<String> = match self {
            Self::Words(words) => words.clone(),
            Self::Text(text) => {
                if let Some(sign) = text.chars().find(|c| SHELL.contains(c)) {
                    let message = format!("`{}` is for a shell", sign.escape_debug());
                    let help = "no shell reads this: write a list of words, such as \
                                [sh, -c, \"a | b\"] where you want one";
                    place.value(path, message, help);
                }
                text.split_whitespace().map(Into::into).collect()
            }
        };
        let program = words.first().map_or("", String::as_str);
        if program.is_empty() {
            let help = "write one such as `nft list table inet fw01`";
            place.value(path, "no command", help);
        } else if program.contains('/') && !program.starts_with('/') {
            let help = "write its whole path, or a name alone, which is looked for in PATH";
            place.value(path, format!("`{program}` is a path from nowhere"), help);
        }
        if words.iter().any(|word| word.contains('\0')) {
            place.value(path, "a word has a zero byte in it", "remove it");
        }
        words
    }
}
