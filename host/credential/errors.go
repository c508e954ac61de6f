package credential

import (
	"github.com/hako-run/hako/pdk/abi"
)

// unusable is the error for a credential that cannot be used: a text for guests without internals of the host, and the
// cause for the operator.
type unusable struct {
	abi   *abi.Error
	cause error
}

func (e *unusable) Error() string {
	if e.cause == nil {
		return e.abi.Message
	}
	return e.abi.Message + ": " + e.cause.Error()
}

func (e *unusable) Unwrap() []error { return []error{e.abi, e.cause} }

// unusablef returns an error for guests. cause, which may be nil, is for the operator only.
func unusablef(cause error, format string, args ...any) error {
	return &unusable{abi: abi.Errorf(abi.CodeCredential, format, args...), cause: cause}
}
