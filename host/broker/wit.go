package broker

import "context"

// Interface is an interface of WIT that components may import. Like a Module it may be linked into many instances at
// once.
type Interface struct {
	// Name is the interface without its version, for example "wasi:io/streams". Versions are those of the same minor
	// version as Version ("0.2" for 0.2.9, 0.2.12 and 0.2.0-draft). An empty Version stands for any and for none.
	Name, Version string
	// Functions are its functions by their name in WIT: "get-stdout", "[method]output-stream.write".
	Functions map[string]InterfaceFunc
}

// InterfaceFunc is a function of an interface. Arguments and result are values as package component describes them;
// they have the types that the guest imported, which may be others than those of the interface. The result is nil if
// there is none. A panic with an error ends the call.
//
// A resource of the host is any Go value. The guest holds a handle to it until it drops the handle or the call ends,
// and the value's Drop method is called then, if it has one (component.Dropper).
type InterfaceFunc func(ctx context.Context, call *Call, args []any) any
