//! Clients that do not read their answers.

use std::time::Duration;

use p4runtime::v1;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use super::DEVICE;

type Config = v1::GetForwardingPipelineConfigResponse;

/// Requests the config without reading the answer.
pub(crate) async fn unread_config(channel: Channel) -> Result<Streaming<Config>, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|why| Status::unavailable(why.to_string()))?;
    let path = "/p4.v1.P4Runtime/GetForwardingPipelineConfig".parse().unwrap();
    let request =
        v1::GetForwardingPipelineConfigRequest { device_id: DEVICE, ..Default::default() };
    let codec = tonic_prost::ProstCodec::default();
    let answer = client.server_streaming(Request::new(request), path, codec).await;
    answer.map(tonic::Response::into_inner)
}

/// Repeats a request until the server has noticed that the earlier answers were dropped, for at most
/// this time.
pub(crate) async fn until_accepted<T>(
    most: Duration,
    request: impl AsyncFn() -> Result<T, Status>,
) {
    let repeated = async {
        while request().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(most, repeated).await.expect("dropped answers make room");
}
