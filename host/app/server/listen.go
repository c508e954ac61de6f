package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hako-run/hako/host/outbound"
)

// wsaAddressInUse is WSAEADDRINUSE, which syscall does not name.
const wsaAddressInUse = syscall.Errno(10048)

// listenError names the program that has the address, as far as it is known, and the remedy.
func listenError(key, address string, err error) error {
	switch {
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf(
			"%w: ports below 1024 need the privilege CAP_NET_BIND_SERVICE: grant it, or choose a higher port",
			err,
		)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: no network interface of this machine has this address: choose another one, or 127.0.0.1",
			err)
	}
	if !errors.Is(err, syscall.EADDRINUSE) && !(runtime.GOOS == "windows" && errors.Is(err, wsaAddressInUse)) {
		return err
	}
	who := "another program"
	if isHako(address) {
		who = "another hako"
	}
	remedy := "set " + key + " to " + nextPort(address)
	if key == "http.address" {
		remedy = "hako serve --http " + nextPort(address)
	}
	return fmt.Errorf("%s already uses the address %s: stop it, or choose another address: %s", who, address, remedy)
}

// isHako reports whether a hako answers at the address. It waits two seconds, because that hako may be busy or starting.
func isHako(address string) bool {
	transport := outbound.NewTransport(nil)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 2 * time.Second}
	response, err := client.Get("http://" + address + "/healthz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64))
	return err == nil && strings.HasPrefix(string(text), "hako ")
}

func nextPort(address string) string {
	host, port, err := net.SplitHostPort(address)
	n, convErr := strconv.Atoi(port)
	if err != nil || convErr != nil || n >= 65535 {
		return "127.0.0.1:0"
	}
	return net.JoinHostPort(host, strconv.Itoa(n+1))
}
