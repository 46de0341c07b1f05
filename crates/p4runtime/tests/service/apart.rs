//! A server in a separate process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use p4runtime::LARGEST_MESSAGE;
use p4runtime::v1::p4_runtime_client::P4RuntimeClient;
use tonic::transport::Channel;

use crate::common::{Controller, server};

/// A server in a separate process, so that its memory can be attributed to client messages.
pub(crate) struct Apart {
    child: Child,
    address: String,
}

impl Apart {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "apart::served_apart", "--ignored", "--nocapture"])
            .env("KAIDO_SERVE_APART", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("at ")?.1.to_owned())).unwrap();
        Self { child, address: format!("http://{address}") }
    }

    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(self.address.clone()).unwrap().connect().await.unwrap()
    }

    /// A connection whose streams have no flow-control window: the client takes no byte of any
    /// answer.
    pub(crate) async fn closed_channel(&self) -> Channel {
        let endpoint = Channel::from_shared(self.address.clone()).unwrap();
        endpoint.initial_stream_window_size(0).connect().await.unwrap()
    }

    /// A client that has joined the election.
    pub(crate) async fn joined(&self, election: u128) -> Controller {
        let mut one = self.silent().await;
        one.arbitrate(Some(election)).await;
        one.standing().await;
        one
    }

    /// Opens a stream without sending anything.
    pub(crate) async fn silent(&self) -> Controller {
        let client = P4RuntimeClient::new(self.channel().await);
        let mut client = client.max_encoding_message_size(2 * LARGEST_MESSAGE);
        let (out, requests) = tokio::sync::mpsc::channel(64);
        let requests = tokio_stream::wrappers::ReceiverStream::new(requests);
        let stream = client.stream_channel(requests).await.unwrap().into_inner();
        Controller { client, out, stream, election: None }
    }

    /// Peak memory of the process in bytes.
    pub(crate) fn most(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Not a test: the server process of the other tests.
#[tokio::test]
#[ignore = "serves until its input ends"]
async fn served_apart() {
    if std::env::var_os("KAIDO_SERVE_APART").is_none() {
        return;
    }
    let server = server().await;
    println!("at {}", server.address);
    std::io::stdout().flush().unwrap();
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()))
        .await
        .unwrap()
        .unwrap();
}
