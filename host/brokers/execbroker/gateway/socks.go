package gateway

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"strconv"
	"time"
)

// The part of SOCKS 5 (RFC 1928) that clients need: no authentication, CONNECT to TCP ports.
const (
	socksVersion = 5

	socksNoAuthentication, socksNoMethod = 0x00, 0xff
	socksConnect                         = 1
	socksIPv4, socksName, socksIPv6      = 1, 3, 4

	socksOK, socksNotAllowed, socksUnreachable, socksNoCommand, socksNoAddress = 0, 2, 4, 7, 8
)

// serveSOCKS serves a SOCKS client.
func (s *session) serveSOCKS(c *peekedConn) {
	host, number, code, err := readSOCKSRequest(c)
	if err != nil {
		return
	}
	var server *countedConn
	if code == socksOK {
		var failed *failure
		if server, failed = s.openTarget(s.ctx, host, number); failed != nil {
			code = socksUnreachable
			if failed.outcome == OutcomeRefused {
				code = socksNotAllowed
			}
		}
	}
	_, err = c.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	switch {
	case server == nil:
	case err != nil:
		_ = server.Close()
	default:
		_ = c.SetDeadline(time.Time{})
		relay(s.ctx, c, c, server)
	}
}

var errNoMethod = errors.New("the client requires authentication")

// readSOCKSRequest reads the target of a client. A code other than socksOK rejects the request. An error means that the
// connection failed.
func readSOCKSRequest(c io.ReadWriter) (host, number string, code byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		return "", "", 0, err
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(c, methods); err != nil {
		return "", "", 0, err
	}
	method := byte(socksNoMethod)
	for _, offered := range methods {
		if offered == socksNoAuthentication {
			method = socksNoAuthentication
		}
	}
	if _, err := c.Write([]byte{socksVersion, method}); err != nil {
		return "", "", 0, err
	}
	if method == socksNoMethod {
		return "", "", 0, errNoMethod
	}
	request := make([]byte, 4)
	if _, err := io.ReadFull(c, request); err != nil {
		return "", "", 0, err
	}
	size := map[byte]int{socksIPv4: 4, socksIPv6: 16}[request[3]]
	if request[3] == socksName {
		length := make([]byte, 1)
		if _, err := io.ReadFull(c, length); err != nil {
			return "", "", 0, err
		}
		size = int(length[0])
	}
	rest := make([]byte, size+2)
	switch {
	case request[0] != socksVersion || request[1] != socksConnect:
		return "", "", socksNoCommand, nil
	case size == 0:
		return "", "", socksNoAddress, nil
	}
	if _, err := io.ReadFull(c, rest); err != nil {
		return "", "", 0, err
	}
	number = strconv.Itoa(int(binary.BigEndian.Uint16(rest[size:])))
	if request[3] == socksName {
		return string(rest[:size]), number, socksOK, nil
	}
	addr, _ := netip.AddrFromSlice(rest[:size]) // size is 4 or 16
	return addr.String(), number, socksOK, nil
}
