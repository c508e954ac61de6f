package outbound

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/textproto"
	"strings"
	"time"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/visible"
)

// maxReason bounds a reason, in bytes.
const maxReason = 300

// Reason returns why a connection failed, without its addresses, on one line of visible characters. The server may have
// chosen parts of it, such as the names in a certificate, so it is cut after maxReason bytes.
func Reason(err error) string {
	return visible.Line(clip.Marked(reason(err), maxReason))
}

func reason(err error) string {
	var (
		dns      *net.DNSError
		op       *net.OpError
		cert     *tls.CertificateVerificationError
		timeout  net.Error
		protocol textproto.ProtocolError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "the host's name cannot be resolved"
	case errors.As(err, &cert):
		return cert.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no connection within " + Timeout.Round(time.Second).String()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.As(err, &protocol), strings.Contains(err.Error(), "malformed HTTP"),
		strings.Contains(err.Error(), "transport connection broken"):
		// net/http has no types for these errors, which quote the response.
		return "the response is not HTTP"
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}
