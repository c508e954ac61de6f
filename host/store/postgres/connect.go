package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hako-run/hako/host/store"
)

// connectError explains in one line why connecting failed. The text of pgconn has several lines.
type connectError struct {
	cause  error // one of errors.go
	what   string
	remedy string
	err    error
}

func (e *connectError) Error() string   { return fmt.Sprintf("%v (%s): %s", e.cause, e.what, e.remedy) }
func (e *connectError) Unwrap() []error { return []error{e.cause, e.err} }

// explainConnect returns the cause and the remedy. An error reported by the server takes precedence over errors of
// other attempts.
func explainConnect(err *pgconn.ConnectError) error {
	attempts := attemptsOf(err.Unwrap())
	if own := slices.IndexFunc(attempts, isServerError); own >= 0 {
		attempts = attempts[own : own+1]
	}
	var all []string
	for _, attempt := range attempts {
		if what := whatFailed(attempt); !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	t := connectCondition(attempts[len(attempts)-1])
	return &connectError{t.cause, strings.Join(all, "; "), t.remedy, err}
}

// isServerError reports whether the server reported err.
func isServerError(err error) bool { return errors.As(err, new(*pgconn.PgError)) }

// attemptsOf returns the errors of all attempted addresses and modes.
func attemptsOf(err error) (list []error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok { // joined errors
		for _, one := range several.Unwrap() {
			list = append(list, attemptsOf(one)...)
		}
		return list
	}
	return []error{err}
}

// whatFailed returns the error of an attempt without the address, which the store's name contains.
func whatFailed(err error) string {
	var own *pgconn.PgError
	var dial *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &own):
		return own.Message
	case errors.As(err, &name) && name.IsTimeout: // its text contains a random local port
		return "the host " + name.Name + " is not known: no answer from the name servers"
	case errors.As(err, &name):
		return "the host " + name.Name + " is not known: " + name.Err
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &dial) && dial.Addr != nil:
		return fmt.Sprintf("%s: %v", dial.Addr, dial.Err)
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

func connectCondition(err error) condition {
	var own *pgconn.PgError
	var name *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &own):
		return serverCondition(own)
	case errors.As(err, &name):
		return condition{store.ErrUnreachable, "check the host in store and this machine's name servers"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return condition{store.ErrUnreachable, "nothing listens there: check host and port in store, and that the server " +
			"runs and listens there (listen_addresses)"}
	case errors.Is(err, os.ErrNotExist):
		return condition{store.ErrUnreachable, "there is no such socket: check host and port in store, and that the " +
			"server runs"}
	case isCertificate(err):
		return condition{store.ErrUnreachable, "set sslrootcert in store to the certificate of the server's CA, and write " +
			"the host as in the server's certificate"}
	case refusesTLS(err):
		return condition{store.ErrUnreachable, "the server does not support encryption: set ssl=on there, or on a trusted " +
			"network sslmode=disable in store"}
	case errors.As(err, &network) && network.Timeout():
		return condition{store.ErrUnreachable, "check host and port in store, firewalls and the network; calls succeed " +
			"again when the server answers"}
	}
	return condition{store.ErrUnreachable, "calls succeed again when the server answers"}
}

// serverCondition explains an error that the server reports during connecting.
func serverCondition(own *pgconn.PgError) condition {
	if own.Code == "28000" && strings.Contains(own.Message, "no encryption") {
		return condition{store.ErrUnreachable, "the server may require encryption: add sslmode=verify-full and " +
			"sslrootcert=FILE to store, or check its pg_hba.conf"}
	}
	if t, ok := conditionOf(own.Code); ok {
		return t
	}
	return condition{store.ErrUnreachable, "see the server's log"}
}

// refusesTLS reports whether the server refused a required encryption.
func refusesTLS(err error) bool { return strings.Contains(err.Error(), "refused TLS") }

// isCertificate reports whether err is about the server's certificate.
func isCertificate(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}
