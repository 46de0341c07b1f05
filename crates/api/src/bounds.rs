//! Memory bounds for requests to daemons.

use std::sync::{Arc, LazyLock};

use grpc_bounds::{Bounds, Budget, Layer, Shapes};

/// The largest request: a data plane file of a million entries.
pub const LARGEST_REQUEST: usize = 256 << 20;

/// The `FileDescriptorSet` of `proto/`, written by the build.
static FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kaido.bin"));

static SHAPES: LazyLock<Arc<Shapes>> = LazyLock::new(|| {
    Arc::new(Shapes::new(FILE_DESCRIPTOR_SET).expect("the description is the build's own"))
});

/// Bounds the requests of a server of nodes and users.
pub fn small_requests() -> Layer<Bounds> {
    layer(Bounds { length: 4 << 20, memory: 64 << 20, is_privileged: false }, 256 << 20)
}

/// Bounds the requests of a server that takes files.
pub fn large_requests() -> Layer<Bounds> {
    let length = LARGEST_REQUEST as u64;
    layer(Bounds { length, memory: 3 * length, is_privileged: false }, 4 * length)
}

fn layer(bounds: Bounds, budget: u64) -> Layer<Bounds> {
    Layer::same(Arc::clone(&SHAPES), Budget::new(0, budget), bounds)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::v1;

    fn counted(name: &str, bytes: &[u8]) -> u64 {
        SHAPES.memory(name, bytes).unwrap()
    }

    #[test]
    fn structs_fit_into_the_counted_size() {
        macro_rules! hold {
            ($($name:ident),*) => {
                $(
                    let of = counted(concat!("kaido.v1.", stringify!($name)), &[]);
                    assert!(size_of::<v1::$name>() as u64 <= of, "{}: {of}", stringify!($name));
                )*
            };
        }
        hold!(
            FromNode,
            Hello,
            Telemetry,
            Assigned,
            Application,
            NetworkInterface,
            InterfaceLoad,
            AddApplicationRequest,
            ApplyDataplaneRequest,
            AddFunctionRequest,
            RemoveFunctionRequest,
            TraceDataplaneRequest,
            ChangeEmulatedLinkRequest,
            AddCrossTrafficRequest,
            BeginTracesRequest,
            GetXskRequest,
            AttachXskRequest,
            DetachXskRequest,
            GetNetworkResponse,
            ApplicationStatus
        );
    }

    /// An empty element of two bytes becomes a struct of some hundred.
    #[test]
    fn empty_elements_are_counted() {
        let hello =
            v1::Hello { installed: vec![Default::default(); 100_000], ..Default::default() };
        let message = v1::FromNode { message: Some(v1::from_node::Message::Hello(hello)) };
        let bytes = message.encode_to_vec();
        let memory = counted("kaido.v1.FromNode", &bytes);
        assert!(bytes.len() < 300_000 && memory > 10_000_000, "{memory} of {}", bytes.len());
    }

    #[test]
    fn a_file_of_a_million_entries_may_be_applied() {
        let line =
            "  - {prefix: 2001:db8:1234:5678::/64, behavior: End.DT46, table: 100, tenant: blue}\n";
        let request =
            v1::ApplyDataplaneRequest { file: line.repeat(1_000_000), ..Default::default() };
        let bytes = request.encode_to_vec();
        let memory = bytes.len() as u64 + counted("kaido.v1.ApplyDataplaneRequest", &bytes);
        assert!(bytes.len() < LARGEST_REQUEST && memory < 3 * LARGEST_REQUEST as u64, "{memory}");
    }
}
