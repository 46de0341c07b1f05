//! Alias regions. Compiled code accesses two kinds of memory that never overlap, so a store to one
//! does not invalidate values loaded from the other.

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{AliasRegion, AliasRegionData, Function, MemFlagsData};

const SHARED: usize = 0;
const MEMORY: usize = 1;

/// Declares the alias regions in a function, before any access.
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

/// Flags for accesses to fields of the state, which program accesses cannot reach.
pub(super) fn shared() -> MemFlagsData {
    MemFlagsData::trusted().with_alias_region(Some(AliasRegion::new(SHARED)))
}

/// Flags for program accesses, which may overlap each other and be unaligned.
pub(super) fn memory() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_alias_region(Some(AliasRegion::new(MEMORY)))
}
