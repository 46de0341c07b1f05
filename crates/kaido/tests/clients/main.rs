//! `kaido xsk run` with AF_XDP clients of others, unmodified.

mod bed;
mod calls;
mod churn;
mod control;
mod control_planes;
mod dpdk;
mod fragments;
mod knot;
mod labs;
mod openvswitch;
mod page;
mod streams;
