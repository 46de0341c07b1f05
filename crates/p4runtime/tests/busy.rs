//! Tests of a device that other clients keep busy with reads. Progress is counted in reads of the
//! device, so that the speed of the machine does not matter.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod common;

use std::time::Duration;

use common::*;
use p4runtime::v1::{self, entity::Entity, p4_runtime_client::P4RuntimeClient};
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Cells of a read, each an entity of its own. The messages of all reads fit the memory of such
/// clients.
const CELLS: usize = 1500;

/// Time of the device for one cell: that of a whole read is several times the limit of 20 ms.
const CELL: Duration = Duration::from_micros(100);

/// Connections of other clients, and their concurrent reads.
const CONNECTIONS: usize = 4;
const READS: usize = 8;

fn cell(index: i64) -> v1::Entity {
    let index = Some(v1::Index { index });
    let entry = v1::CounterEntry { counter_id: COUNTER, index, ..Default::default() };
    entity(Entity::CounterEntry(entry))
}

/// Reads single cells, and returns their number.
async fn read_cells(mut client: P4RuntimeClient<Channel>) -> Result<usize, Status> {
    let entities = (0..CELLS as i64).map(|index| cell(index % 16)).collect();
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

    /// Many reads of other clients, of which most have not ended.
    async fn busy(&self) -> JoinSet<Result<usize, Status>> {
        self.device().read_takes = CELL;
        let mut reads = JoinSet::new();
        for _ in 0..CONNECTIONS {
            let client = self.client().await;
            for _ in 0..READS {
                reads.spawn(read_cells(client.clone()));
            }
        }
        // Two reads have been executed: those of all connections have arrived.
        self.until_cells_are_read(2 * CELLS).await;
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
