// Values that the tenant's VM publishes (`kaido p4 publish`), read during packet processing. Keys are
// names. When the program is loaded, each key that it reads is looked up among the published values.

#ifndef _VM_P4_
#define _VM_P4_

/// Writes the last published value to `value`, saturated to its width, or 0 if there is none. Returns true
/// if the value is fresh: its age, by the clock of the machine that runs the program, is within the limit
/// that the VM has set.
extern bool vm_info<T>(string key, out T value);

/// Returns the age of the value in nanoseconds, or all ones if the VM has never published it.
extern bit<64> vm_info_age(string key);

#endif
