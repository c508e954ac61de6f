package wasi

import (
	"errors"
	"maps"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/wasm/component"
)

// noSockets is the reason for which functions of wasi:sockets fail.
const noSockets = "wasi:sockets is not offered to plugins: use wasi:http/outgoing-handler, which goes through the " +
	"grants of the manifest's permissions.http"

// accessDenied is the code access-denied of wasi:sockets.
const accessDenied = 1

// sockets is wasi:sockets. Language runtimes import it whether they use it or not, so it is there, and each attempt to
// get a socket fails with access-denied and a log record. Without a socket its methods cannot be called.
func (h *host) sockets() []broker.Interface {
	refuse := func(c caller) any {
		h.warn(c.ctx, noSockets)
		return component.Failed(component.Case{Number: accessDenied})
	}
	create := func1(func(c caller, _ component.Case) any { return refuse(c) })
	return []broker.Interface{
		wasi("sockets/instance-network", functions{"instance-network": func0(func(caller) any { return network{} })}),
		wasi("sockets/network", functions{
			"network-error-code": func1(func(caller, *ioError) any { return component.None }),
		}),
		wasi("sockets/ip-name-lookup", functions{
			"resolve-addresses": func2(func(c caller, _ network, _ string) any { return refuse(c) }),
			"[method]resolve-address-stream.resolve-next-address": noSocket,
			"[method]resolve-address-stream.subscribe":            noSocket,
		}),
		wasi("sockets/tcp-create-socket", functions{"create-tcp-socket": create}),
		wasi("sockets/udp-create-socket", functions{"create-udp-socket": create}),
		wasi("sockets/tcp", methods("tcp-socket", "start-bind", "finish-bind", "start-connect", "finish-connect",
			"start-listen", "finish-listen", "accept", "local-address", "remote-address", "is-listening",
			"address-family", "set-listen-backlog-size", "keep-alive-enabled", "set-keep-alive-enabled",
			"keep-alive-idle-time", "set-keep-alive-idle-time", "keep-alive-interval", "set-keep-alive-interval",
			"keep-alive-count", "set-keep-alive-count", "hop-limit", "set-hop-limit", "receive-buffer-size",
			"set-receive-buffer-size", "send-buffer-size", "set-send-buffer-size", "subscribe", "shutdown")),
		wasi("sockets/udp", join(
			methods("udp-socket", "start-bind", "finish-bind", "stream", "local-address", "remote-address",
				"address-family", "unicast-hop-limit", "set-unicast-hop-limit", "receive-buffer-size",
				"set-receive-buffer-size", "send-buffer-size", "set-send-buffer-size", "subscribe"),
			methods("incoming-datagram-stream", "receive", "subscribe"),
			methods("outgoing-datagram-stream", "check-send", "send", "subscribe"))),
	}
}

// network is wasi:sockets/network.network, with which nothing can be reached.
type network struct{}

// Lasting implements component.Lasting.
func (network) Lasting() {}

var noSocket = func0(func(caller) any { panic(errors.New(noSockets)) })

// methods returns the methods of a resource that is never created.
func methods(resource string, names ...string) functions {
	all := functions{}
	for _, name := range names {
		all["[method]"+resource+"."+name] = noSocket
	}
	return all
}

// join adds the functions of more to first.
func join(first functions, more ...functions) functions {
	for _, m := range more {
		maps.Copy(first, m)
	}
	return first
}
