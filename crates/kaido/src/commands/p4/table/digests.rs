//! `kaido p4 digest`: prints the digests of a program.

use std::process::ExitCode;

use anyhow::anyhow;
use num_bigint::BigInt;
use output::p4::{DigestData, DigestValue};
use p4info::v1::p4_data_type_spec::TypeSpec;
use p4runtime::v1::stream_message_response::Update as Told;
use p4runtime::v1::{self, entity::Entity, p4_data, stream_message_request, update::Type as Kind};
use p4runtime::{HeaderField, Type};
use tonic::Code;

use super::client::{Client, Primary};
use super::{entry, value};
use crate::cli::P4DigestOptions;
use crate::failure::{Done, Failure};
use crate::output::Output;
use crate::runtime::{block_on, nobody_watches};

/// Maximum delay of a value before it is sent, in nanoseconds.
const TIMEOUT: i64 = 100_000_000;
/// Maximum length of a digest list.
const MAX_LIST: i32 = 256;
/// Timeout for acknowledging a list, in nanoseconds; after it the device may send the list again.
const ACK_TIMEOUT: i64 = 1_000_000_000;

pub(in super::super) fn run(options: &P4DigestOptions, output: &Output) -> Done {
    block_on(async {
        let mut client = Client::connect(&options.device.device).await?;
        let all = client.pipeline.digests.iter();
        let all: Vec<(&str, u32)> = all.map(|(id, digest)| (&*digest.name, *id)).collect();
        let ids = match &options.digest {
            Some(name) => {
                let found = entry::named(all.into_iter(), name, "digest");
                vec![found.map_err(|why| Failure::usage(anyhow!("{why}")))?]
            }
            None if all.is_empty() => {
                return Err(Failure::usage(anyhow!("the program has no digests")));
            }
            None => all.into_iter().map(|(_, id)| id).collect(),
        };
        let mut primary = client.primary(&options.device).await?;
        let mut mine = Vec::new();
        for id in ids {
            match client.update(&primary, Kind::Insert, wanted(id)).await {
                Ok(()) => mine.push(id),
                // Another client has enabled this digest, and keeps it.
                Err(status) if Client::code(&status) == Code::AlreadyExists => {}
                Err(status) => return Err(Client::failure(&status)),
            }
        }
        let shown = tokio::select! {
            shown = show(&client, &mut primary, options.count, output) => shown,
            () = nobody_watches() => Ok(()),
        };
        for id in mine {
            // Another client may be primary by now and use the digest, so ignore the error.
            let _ = client.update(&primary, Kind::Delete, wanted(id)).await;
        }
        shown
    })??;
    Ok(ExitCode::SUCCESS)
}

fn wanted(digest_id: u32) -> Entity {
    Entity::DigestEntry(v1::DigestEntry {
        digest_id,
        config: Some(v1::digest_entry::Config {
            max_timeout_ns: TIMEOUT,
            max_list_size: MAX_LIST,
            ack_timeout_ns: ACK_TIMEOUT,
        }),
    })
}

/// Prints values as they arrive, up to `most` or without limit.
async fn show(
    client: &Client,
    primary: &mut Primary,
    most: Option<u64>,
    output: &Output,
) -> Result<(), Failure> {
    let mut left = most;
    while left != Some(0) {
        let list = match primary.next().await? {
            Told::Digest(list) => list,
            Told::Arbitration(told) if told.status.as_ref().is_some_and(|one| one.code != 0) => {
                return Err(Failure::failed(anyhow!("another client is primary now")));
            }
            _ => continue,
        };
        let digest = client.pipeline.digests.get(&list.digest_id);
        for data in &list.data {
            let Some(digest) = digest.filter(|_| left != Some(0)) else { break };
            left = left.map(|left| left - 1);
            let names = names(client, list.digest_id);
            let said = parts(data, &digest.of, &names);
            let value = DigestValue { digest: digest.name.clone(), data: data_of(&said) };
            output.print(&value, |_| format!("{}  {}", digest.name, text_of(&said)))?;
        }
        let ack = v1::DigestListAck { digest_id: list.digest_id, list_id: list.list_id };
        primary.send(stream_message_request::Update::DigestAck(ack)).await;
    }
    Ok(())
}

/// Returns the names of a digest's members, if it is a struct.
fn names(client: &Client, id: u32) -> Vec<String> {
    let is = |one: &&p4info::v1::Digest| one.preamble.as_ref().is_some_and(|one| one.id == id);
    let spec = client
        .info
        .digests
        .iter()
        .find(is)
        .and_then(|one| one.type_spec.as_ref()?.type_spec.as_ref());
    let Some(TypeSpec::Struct(named)) = spec else { return Vec::new() };
    let types = client.info.type_info.as_ref();
    let members = types.and_then(|types| types.structs.get(&named.name)).map(|one| &one.members);
    members.into_iter().flatten().map(|member| member.name.clone()).collect()
}

/// A value, or several values with names.
enum Shown {
    One(String),
    Several(Vec<(String, Shown)>),
}

fn parts(data: &v1::P4Data, of: &Type, names: &[String]) -> Shown {
    use p4_data::Data;
    let name = |at: usize| names.get(at).cloned().unwrap_or_else(|| at.to_string());
    match (&data.data, of) {
        (Some(Data::Struct(all) | Data::Tuple(all)), Type::Struct(types) | Type::Tuple(types)) => {
            let all = all.members.iter().zip(types.iter()).enumerate();
            let one = |(at, (one, of)): (usize, (&v1::P4Data, &Type))| {
                let shown = match (&one.data, of) {
                    (Some(Data::Bitstring(bytes)), Type::Bits(field)) => {
                        Shown::One(number(bytes, *field, &name(at)))
                    }
                    _ => parts(one, of, &[]),
                };
                (name(at), shown)
            };
            Shown::Several(all.map(one).collect())
        }
        (Some(Data::Bitstring(bytes)), Type::Bits(field)) => Shown::One(number(bytes, *field, "")),
        (Some(Data::EnumValue(bytes)), Type::Enum(width)) => {
            Shown::One(number(bytes, HeaderField { width: *width, signed: false }, ""))
        }
        (Some(Data::Bool(is)), _) => Shown::One(is.to_string()),
        _ => Shown::One("?".to_owned()),
    }
}

fn number(bytes: &[u8], field: HeaderField, name: &str) -> String {
    match field.signed {
        true => BigInt::from_signed_bytes_be(bytes).to_string(),
        false => value::show(bytes, field.width, name),
    }
}

fn text_of(shown: &Shown) -> String {
    match shown {
        Shown::One(text) => text.clone(),
        Shown::Several(all) => {
            let one = |(name, shown): &(String, Shown)| match shown {
                Shown::One(text) => format!("{name}={text}"),
                Shown::Several(_) => format!("{name}=({})", text_of(shown)),
            };
            all.iter().map(one).collect::<Vec<_>>().join(" ")
        }
    }
}

fn data_of(shown: &Shown) -> DigestData {
    match shown {
        Shown::One(text) => DigestData::One(text.clone()),
        Shown::Several(all) => DigestData::Several(
            all.iter().map(|(name, shown)| (name.clone(), data_of(shown))).collect(),
        ),
    }
}
