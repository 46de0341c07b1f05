// What the tenant's VM says of itself: values that it publishes (`kaido p4 publish`), read while packets
// come. Keys are names; each one that a program reads is looked for in what the VM publishes when the
// program is loaded.

#ifndef _VM_P4_
#define _VM_P4_

/// Puts the value that the VM published last into `value`, or the greatest one that fits there; 0 if it
/// has published none. True if it is fresh: no older than the VM says that it may be, by the clock of the
/// machine on which the program runs.
extern bool vm_info<T>(string key, out T value);

/// How long ago the VM counted the value, in nanoseconds; all ones if it never did.
extern bit<64> vm_info_age(string key);

#endif
