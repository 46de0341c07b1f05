//! The skeleton's maps with the types of their entries.

use libbpf_rs::{Map, MapHandle};

use crate::Error;
use crate::abi::Abi;
use crate::index::{Index, mix};
use crate::records::{Indexed, Keyed, Records};
use crate::skeleton::types;
use crate::table::{Mapped, Table};

pub(super) fn table<K: Abi, V: Abi>(
    name: &'static str,
    map: &Map<'_>,
) -> Result<Table<K, V>, Error> {
    Ok(Table::new(name, handle(name, map)?))
}

pub(super) fn mapped<V: Abi>(name: &'static str, map: &Map<'_>) -> Result<Mapped<V>, Error> {
    Mapped::new(name, &handle(name, map)?)
}

pub(super) fn indexed<V: Keyed>(
    name: &'static str,
    records: &Map<'_>,
    index: Mapped<types::bucket>,
) -> Result<Indexed<V>, Error> {
    Ok(Indexed::new(Records::new(name, mapped(name, records)?), Index::new(name, index)))
}

fn handle(name: &'static str, map: &Map<'_>) -> Result<MapHandle, Error> {
    MapHandle::try_from(map).map_err(|source| Error::Map { map: name, doing: "open", source })
}

impl Keyed for types::sid {
    fn hash(&self) -> u64 {
        mix(self.address[0], self.address[1], u64::from(self.length))
    }
}

impl Keyed for types::prefix4 {
    fn hash(&self) -> u64 {
        mix(u64::from(self.address), u64::from(self.tenant), u64::from(self.length))
    }
}

impl Keyed for types::prefix6 {
    fn hash(&self) -> u64 {
        let owner = u64::from(self.tenant) << 32 | u64::from(self.length);
        mix(self.address[0], self.address[1], owner)
    }
}
