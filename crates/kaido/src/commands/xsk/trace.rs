//! `kaido xsk trace`.

use std::process::ExitCode;

use api::v1;
use output::xsk::XskTraced;

use super::directory::Running;
use crate::cli::WhichXsk;
use crate::failure::{Done, Failure};
use crate::output::Output;
use crate::runtime::{block_on, nobody_watches};

pub(super) fn run(interface: Option<String>, most: u32, which: &WhichXsk, output: &Output) -> Done {
    let running = Running::choose(which)?;
    let request = v1::TraceXskRequest { interface, most };
    block_on(async {
        let tracing = async {
            let mut client = api::connect_xsk(&running.socket).await?;
            let mut packets = client.trace_xsk(request).await?.into_inner();
            while let Some(packet) = packets.message().await? {
                output.print(&traced(packet), text)?;
            }
            Ok::<_, Failure>(())
        };
        // The trace ends with the command, because dropping the call ends it.
        tokio::select! {
            ended = tracing => ended,
            () = nobody_watches() => Ok(()),
        }
    })?
    .map(|()| ExitCode::SUCCESS)
}

fn traced(of: v1::TracedXskPacket) -> XskTraced {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    XskTraced {
        process: of.process,
        interface: of.interface,
        queue: of.queue,
        direction: if of.transmit { "transmit" } else { "receive" },
        tenant: of.tenant,
        port: of.port,
        length: of.length,
        headers: of.headers,
        head: hex(&of.head),
        verdict: of.verdict,
        redirected_to: of.redirected_to,
        reason: of.reason,
        passed_length: of.passed_length,
        passed_headers: of.passed_headers,
        passed_head: hex(&of.passed_head),
    }
}

fn text(packet: &XskTraced) -> String {
    let XskTraced { interface, direction, length, headers, verdict, .. } = packet;
    let mut text = format!("{interface} {direction}");
    if let (Some(tenant), Some(port)) = (&packet.tenant, packet.port) {
        text += &format!(", port {port} of tenant {tenant}");
    }
    text += &format!(", {length} bytes: {headers}\n    {verdict}");
    if let Some(port) = packet.redirected_to {
        text += &format!(" to port {port}, which drops it");
    }
    if !packet.reason.is_empty() {
        text += &format!(" by `default`: {}", packet.reason);
    }
    let before = (packet.length, &packet.head);
    if packet.verdict == "passed" && (packet.passed_length, &packet.passed_head) != before {
        text += &format!(", {} bytes: {}", packet.passed_length, packet.passed_headers);
    }
    text
}
