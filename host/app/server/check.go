package server

import (
	"errors"
	"fmt"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/govern/policy"
)

// checkConfig returns an error if a configuration keeps "hako serve" from starting, as CheckHTTP and CheckConsole do.
// It reads no plugins.
func checkConfig(c *config.Config) error {
	if err := CheckHTTP(c); err != nil {
		return err
	}
	return CheckConsole(c)
}

// CheckStart performs the checks of a server with the plugins of h before it listens.
func CheckStart(c *config.Config, h *host.Host) error {
	if err := checkConfig(c); err != nil {
		return err
	}
	if err := CheckUpstreams(c); err != nil {
		return err
	}
	if _, err := policy.OpenLive(c.Policy); err != nil {
		return err
	}
	return checkMCP(c, h)
}

// CheckUpstreams reports whether the file of upstream servers or one of its entries is invalid. A server starts without
// the invalid entries.
func CheckUpstreams(c *config.Config) error {
	specs, err := UpstreamSpecs(c)
	for _, s := range specs {
		if s.Invalid != "" {
			err = errors.Join(err, fmt.Errorf("configuration: upstream server %q: %s", s.Name, s.Invalid))
		}
	}
	return err
}

// CheckHTTP reports whether logins or the certificate are not usable, or do not suffice for the address.
func CheckHTTP(c *config.Config) error {
	if _, err := authenticator(c, nil, authResources{}); err != nil {
		return err
	}
	if _, err := newCertificate(c.HTTP.TLSCert, c.HTTP.TLSKey); err != nil {
		return fmt.Errorf("configuration: http.tls: %w", err)
	}
	return nil
}
