//! Tests of a device that other clients keep busy with reads. Progress is counted in reads of the
//! device, so that the speed of the machine does not matter.

use std::time::Duration;

use crate::common::*;
use p4runtime::v1::p4_runtime_client::P4RuntimeClient;
use p4runtime::v1::set_forwarding_pipeline_config_request::Action;
use p4runtime::v1::{self, entity::Entity};
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Cells of a read, each an entity of its own. The messages of all reads fit the memory of such
/// clients.
const CELLS: usize = 1500;

/// Time of the device for one cell: that of a whole read is several times the limit of 20 ms.
const CELL: Duration = Duration::from_micros(100);

/// Entries of a table whose counters are read by a wildcard, and the device's time for one: that of
/// a whole read is many times the limit.
const ENTRIES: usize = 30_000;
const ENTRY: Duration = Duration::from_micros(20);

/// Connections of other clients, and their concurrent reads.
const CONNECTIONS: usize = 4;
const READS: usize = 8;

fn cell(index: i64) -> v1::Entity {
    let index = Some(v1::Index { index });
    let entry = v1::CounterEntry { counter_id: COUNTER, index, ..Default::default() };
    entity(Entity::CounterEntry(entry))
}

/// Reads single cells, and returns their number.
async fn read_cells(client: P4RuntimeClient<Channel>) -> Result<usize, Status> {
    read(client, cells()).await
}

fn cells() -> Vec<v1::Entity> {
    (0..CELLS as i64).map(|index| cell(index % 16)).collect()
}

/// Reads entities, and returns the number of results.
async fn read(
    mut client: P4RuntimeClient<Channel>,
    entities: Vec<v1::Entity>,
) -> Result<usize, Status> {
    let request = v1::ReadRequest { device_id: DEVICE, entities, ..Default::default() };
    let mut stream = client.read(request).await?.into_inner();
    let mut count = 0;
    while let Some(message) = stream.message().await? {
        count += message.entities.len();
    }
    Ok(count)
}

impl Server {
    fn cells_read(&self) -> usize {
        self.device().counters_read
    }

    async fn until_cells_are_read(&self, count: usize) {
        let read = async {
            while self.cells_read() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), read).await.expect("no read begins");
    }

    /// Many reads of single cells by other clients, of which most have not ended.
    async fn busy(&self) -> JoinSet<Result<usize, Status>> {
        self.busy_with(cells(), CELLS, CELL).await
    }

    /// Many reads of `count` counters each, of which most have not ended. The device takes `one` for
    /// each counter.
    async fn busy_with(
        &self,
        entities: Vec<v1::Entity>,
        count: usize,
        one: Duration,
    ) -> JoinSet<Result<usize, Status>> {
        let before = self.cells_read();
        self.device().read_takes = one;
        let mut reads = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let client = self.client().await;
            for _ in 0..READS {
                reads.spawn(read(client.clone(), entities.clone()));
            }
        }
        // Two reads have been executed: those of all connections have arrived.
        self.until_cells_are_read(before + 2 * count).await;
        reads
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_others_do_not_delay_the_primary() {
    let server = server().await;
    let mut primary = server.ready().await;
    let _reads = server.busy().await;
    for number in 0..5 {
        let before = server.cells_read();
        primary.write(insert(route(number))).await.unwrap();
        let meanwhile = server.cells_read() - before;
        assert!(meanwhile < 2 * CELLS, "{meanwhile} cells were read before write {number}");
    }
    let all = CONNECTIONS * READS * CELLS;
    assert!(server.cells_read() < all, "the reads have ended before the writes");
}

/// `kinds.p4` with the direct counter at the table of routes.
fn counted_routes() -> v1::ForwardingPipelineConfig {
    let mut info = kinds();
    let counter = &mut info.direct_counters[0];
    counter.direct_table_id = ROUTE;
    let id = counter.preamble.as_ref().unwrap().id;
    for table in &mut info.tables {
        table.direct_resource_ids.retain(|one| *one != id);
        if table.preamble.as_ref().unwrap().id == ROUTE {
            table.direct_resource_ids.push(id);
        }
    }
    config(info)
}

/// Each write waits for a part of a read of all counters of a table.
async fn counters_of_entries_do_not_delay_the_primary(asked: Entity) {
    let server = server().await;
    let mut primary = server.primary().await;
    primary.set(Action::VerifyAndCommit, Some(counted_routes())).await.unwrap();
    let routes = (0..ENTRIES as u32).map(|number| insert(route(number))).collect();
    primary.write_all(routes, Default::default()).await.unwrap();
    let _reads = server.busy_with(vec![entity(asked)], ENTRIES, ENTRY).await;
    for number in 0..5 {
        let before = server.cells_read();
        primary.write(insert(route((ENTRIES + number) as u32))).await.unwrap();
        let meanwhile = server.cells_read() - before;
        assert!(meanwhile < ENTRIES / 2, "{meanwhile} counters were read before write {number}");
    }
    let all = CONNECTIONS * READS * ENTRIES;
    assert!(server.cells_read() < all, "the reads have ended before the writes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_direct_counters_do_not_delay_the_primary() {
    let table = v1::TableEntry { table_id: ROUTE, ..Default::default() };
    let asked = v1::DirectCounterEntry { table_entry: Some(table), data: None };
    counters_of_entries_do_not_delay_the_primary(Entity::DirectCounterEntry(asked)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_entries_with_counters_do_not_delay_the_primary() {
    let counter_data = Some(v1::CounterData::default());
    let asked = v1::TableEntry { table_id: ROUTE, counter_data, ..Default::default() };
    counters_of_entries_do_not_delay_the_primary(Entity::TableEntry(asked)).await;
}

/// A client that joins, perhaps as the next primary, waits for few of the reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_do_not_delay_the_next_primary() {
    let server = server().await;
    let _primary = server.ready().await;
    let _reads = server.busy().await;
    let before = server.cells_read();
    assert_eq!(server.joined(2).await.1, Code::Ok);
    let meanwhile = server.cells_read() - before;
    assert!(meanwhile < CONNECTIONS * READS * CELLS / 4, "{meanwhile} cells were read before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_read_of_another_client_is_interrupted_for_the_primary() {
    let server = server().await;
    let mut primary = server.ready().await;
    server.device().read_takes = CELL;
    let read = tokio::spawn(read_cells(server.client().await));
    server.until_cells_are_read(1).await;
    primary.write(insert(route(1))).await.unwrap();
    let count = server.cells_read();
    assert!(count < CELLS, "the whole read came first");
    assert_eq!(read.await.unwrap().unwrap(), CELLS, "it continues");
    assert_eq!(server.cells_read(), CELLS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_of_another_device_is_read_in_parts() {
    let server = server().await;
    let mut primary = server.ready().await;
    server.device().read_takes = CELL;
    let mut other = server.silent().await;
    other.arbitrate_for(OTHER_DEVICE, Some(1)).await;
    other.heard().await.unwrap();
    let read = tokio::spawn(read_cells(other.client.clone()));
    server.until_cells_are_read(1).await;
    primary.write(insert(route(1))).await.unwrap();
    let count = server.cells_read();
    assert!(count < CELLS, "the whole read came first");
    assert_eq!(read.await.unwrap().unwrap(), CELLS, "it continues");
}
