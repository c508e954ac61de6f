package auth

import (
	"fmt"
	"net"

	"github.com/hako-run/hako/internal/address"
)

// CheckExposure refuses an address that other machines can reach, without any authentication: auth is nil and
// the host of the address is no loopback name. Its error says what to do.
func CheckExposure(addr string, auth *Auth) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fmt.Errorf("address %q has no port: write it as host:port, such as 127.0.0.1:8420", addr)
	}
	if auth != nil || address.IsLocalName(address.Hostname(addr)) {
		return nil
	}
	return fmt.Errorf("address %s can be reached from other machines, and anybody could use every tool: "+
		"listen on 127.0.0.1, or set http.auth.required and make a token with 'hako token create'", addr)
}
