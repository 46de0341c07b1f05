//! The two kinds of memory that code reaches, which never overlap: what is known of one stays known
//! when the other is written.

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{AliasRegion, AliasRegionData, Function, MemFlagsData};

const SHARED: usize = 0;
const MEMORY: usize = 1;

/// Declares them in a function, before any access.
pub(super) fn declare(function: &mut Function) {
    for (place, description) in [(SHARED, "state"), (MEMORY, "memory")] {
        let data = AliasRegionData { user_id: place as u32, description: description.into() };
        let region = function.dfg.alias_regions.insert(data);
        assert_eq!(
            region,
            AliasRegion::new(place),
            "a function's regions are declared once, in order"
        );
    }
}

/// Accesses to fields of the state, which no program's access reaches.
pub(super) fn shared() -> MemFlagsData {
    MemFlagsData::trusted().with_alias_region(Some(AliasRegion::new(SHARED)))
}

/// What a program reads and writes: it may overlap, and be anywhere.
pub(super) fn memory() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_alias_region(Some(AliasRegion::new(MEMORY)))
}
