package component

// Dropper is a resource of the host that wants to know when the guest no longer holds it.
type Dropper interface{ Drop() }

// Lasting is a resource of the host without state of one call, such as a standard stream: an instance that holds one
// after its start can still be copied.
type Lasting interface{ Lasting() }
