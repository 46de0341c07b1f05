//! `kaido xsk ls`, `attach` and `detach`.

use api::v1;
use output::xsk::{XskAttached, XskClient, XskDetached};

use super::directory::Running;
use super::state;
use crate::cli::WhichXsk;
use crate::failure::Failure;
use crate::output::{Output, counted, table, tell};
use crate::runtime::block_on;

pub(super) fn list(lab: Option<&str>, output: &Output) -> Result<(), Failure> {
    let all = Running::all(lab)?;
    let clients = block_on(async {
        let mut clients = Vec::new();
        for one in all {
            match tokio::time::timeout(state::TIMEOUT, state::get(&one)).await {
                Ok(Ok(state)) => clients.push(client(one, state)),
                // It may have ended meanwhile.
                Ok(Err(_)) => {}
                Err(_) => tell(&format!("kaido: client `{}` does not respond", one.name)),
            }
        }
        clients
    })?;
    output.print(&clients, |clients| {
        let row = |one: &XskClient| {
            let tenants = one.tenants.join(", ");
            vec![one.name.clone(), one.process.to_string(), one.executable.clone(), tenants]
        };
        table(&["NAME", "PROCESS", "EXECUTABLE", "TENANTS"], clients.iter().map(row))
    })
}

fn client(running: Running, state: v1::GetXskResponse) -> XskClient {
    let v1::GetXskResponse { process, executable, programs, .. } = state;
    let tenants = programs.into_iter().map(|program| program.tenant).collect();
    XskClient { name: running.name, process, executable, tenants }
}

pub(super) fn attach(
    tenant: String,
    interface: String,
    port: Option<u32>,
    which: &WhichXsk,
    output: &Output,
) -> Result<(), Failure> {
    let running = Running::choose(which)?;
    let request =
        v1::AttachXskRequest { tenant: tenant.clone(), interface: interface.clone(), port };
    let answer = block_on(async {
        let mut client = api::connect_xsk(&running.socket).await?;
        Ok::<_, Failure>(client.attach_xsk(request).await?.into_inner())
    })??;
    let v1::AttachXskResponse { port, sockets } = answer;
    output.print(&XskAttached { tenant, interface, port, sockets }, |said| {
        let XskAttached { tenant, interface, port, sockets } = said;
        let open = match sockets {
            0 => "the client has not opened it yet".to_owned(),
            sockets => format!("the client has {} there", counted(*sockets as usize, "socket")),
        };
        format!("{interface} is port {port} of tenant {tenant}; {open}")
    })
}

pub(super) fn detach(interface: String, which: &WhichXsk, output: &Output) -> Result<(), Failure> {
    let running = Running::choose(which)?;
    let request = v1::DetachXskRequest { interface: interface.clone() };
    let answer = block_on(async {
        let mut client = api::connect_xsk(&running.socket).await?;
        Ok::<_, Failure>(client.detach_xsk(request).await?.into_inner())
    })??;
    output.print(&XskDetached { tenant: answer.tenant, interface }, |said| {
        let XskDetached { tenant, interface } = said;
        format!("{interface} is not a port of tenant {tenant} anymore: its packets pass")
    })
}
