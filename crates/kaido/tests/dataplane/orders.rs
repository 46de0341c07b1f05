//! Orders (gRPC requests) and changes of the kernel, which the same thread of the daemon handles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use api::v1::ApplyDataplaneRequest;
use testkit::until;
use tokio::task::JoinSet;

use crate::net::{FILE, Net, ip, show};

/// Concurrent orders. While the daemon carries one out, the replies to others return with new ones, so
/// that an order always waits.
const AT_ONCE: usize = 16;

/// A file whose plan takes the daemon far longer than the client. A plan changes nothing.
fn large_file() -> String {
    let sids: String = (1..2000).map(|n| format!("  \"fd00:1::8:{n:x}\": End\n")).collect();
    format!("{FILE}locators: [\"fd00:1::/32\"]\nsids:\n{sids}")
}

/// Clients that send an order when they have received the reply to the last one.
struct Flood {
    ends: Arc<AtomicBool>,
    replies: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Flood {
    fn start(net: &Net) -> Self {
        let socket = std::path::Path::new(&net.state()).join(model::dataplane::SOCKET);
        let (ends, replies) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (is_over, count) = (Arc::clone(&ends), Arc::clone(&replies));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let client = api::connect_dataplane(&socket).await.unwrap();
                let mut clients = JoinSet::new();
                for _ in 0..AT_ONCE {
                    let (mut client, is_over) = (client.clone(), Arc::clone(&is_over));
                    let count = Arc::clone(&count);
                    let file = large_file();
                    let plan = ApplyDataplaneRequest { file, plan: true, ..Default::default() };
                    clients.spawn(async move {
                        while !is_over.load(Ordering::Relaxed) {
                            client.apply_dataplane(plan.clone()).await.unwrap();
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                clients.join_all().await;
            });
        });
        Self { ends, replies, thread: Some(thread) }
    }

    fn replies(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn root_orders_without_end_do_not_keep_the_daemon_from_the_kernels_changes() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    let flood = Flood::start(&net);
    let busy = || (flood.replies() > 50).then_some(());
    until(Duration::from_secs(30), busy, || format!("{} replies", flood.replies()));
    let limit = Duration::from_secs(10);
    let told = || format!("{} replies, {}", flood.replies(), show(&net.node, "-6 route"));
    for number in 1..5 {
        let sid = format!("fd00:1::7:{number}/128");
        assert!(net.packets(&sid).is_none());
        let route = |verb| format!("-6 route {verb} {sid} encap seg6local action End dev r");
        ip(&net.node, &[&route("add")]);
        until(limit, || net.packets(&sid).is_some().then_some(()), told);
        ip(&net.node, &[&route("del")]);
        until(limit, || net.packets(&sid).is_none().then_some(()), told);
    }
    assert!(net.ping(5));
}
