package store

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
)

// connectError is why no connection could be made, in one line; pgconn takes several.
type connectError struct {
	cause  error // of errors.go
	what   string
	remedy string
	err    error
}

func (e *connectError) Error() string   { return fmt.Sprintf("%v (%s): %s", e.cause, e.what, e.remedy) }
func (e *connectError) Unwrap() []error { return []error{e.cause, e.err} }

// explainConnect says what is in the way, and what to do about it. What the server has said counts more than what else was tried.
func explainConnect(err *pgconn.ConnectError) error {
	attempts := attemptsOf(err.Unwrap())
	if own := slices.IndexFunc(attempts, func(err error) bool { return errors.As(err, new(*pgconn.PgError)) }); own >= 0 {
		attempts = attempts[own : own+1]
	}
	var all []string
	for _, attempt := range attempts {
		if what := whatFailed(attempt); !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	t := connectTrouble(attempts[len(attempts)-1])
	return &connectError{t.cause, strings.Join(all, "; "), t.remedy, err}
}

// attemptsOf are the errors of all addresses and ways that were tried.
func attemptsOf(err error) (list []error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok { // joined, not wrapped
		for _, one := range several.Unwrap() {
			list = append(list, attemptsOf(one)...)
		}
		return list
	}
	return []error{err}
}

// whatFailed is an attempt's error without what the store's name says already.
func whatFailed(err error) string {
	var own *pgconn.PgError
	var dial *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &own):
		return own.Message
	case errors.As(err, &name) && name.IsTimeout: // its words name a port that is another one each time
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

// connectTrouble is the cause and the remedy.
func connectTrouble(err error) trouble {
	var own *pgconn.PgError
	var name *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &own):
		return serverTrouble(own)
	case errors.As(err, &name):
		return trouble{ErrUnreachable, "look at the host in store, and at this machine's name servers"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return trouble{ErrUnreachable, "nothing listens there: look at host and port in store, and whether the server runs and listens there (listen_addresses)"}
	case errors.Is(err, os.ErrNotExist):
		return trouble{ErrUnreachable, "there is no such socket: look at host and port in store, and whether the server runs"}
	case isCertificate(err):
		return trouble{ErrUnreachable, "name the certificate of who has signed the server's with sslrootcert in store, and the host as that certificate does"}
	case refusesTLS(err):
		return trouble{ErrUnreachable, "the server does not encrypt: set ssl=on there, or where nobody else is on the way sslmode=disable in store"}
	case errors.As(err, &network) && network.Timeout():
		return trouble{ErrUnreachable, "look at host and port in store, and at firewalls and the load in between; calls succeed again when the server answers"}
	}
	return trouble{ErrUnreachable, "calls succeed again when the server answers"}
}

// serverTrouble is what the server says that lets nobody in.
func serverTrouble(own *pgconn.PgError) trouble {
	if own.Code == "28000" && strings.Contains(own.Message, "no encryption") {
		return trouble{ErrUnreachable, "the server may want encryption: add sslmode=verify-full and sslrootcert=FILE to store, or look at its pg_hba.conf"}
	}
	if t, ok := troubleOf(own.Code); ok {
		return t
	}
	return trouble{ErrUnreachable, "look at the server's log"}
}

// refusesTLS reports that the server does not encrypt, and has to.
func refusesTLS(err error) bool { return strings.Contains(err.Error(), "refused TLS") }

// isCertificate reports that the server's certificate does not hold.
func isCertificate(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}
