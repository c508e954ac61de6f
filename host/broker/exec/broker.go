// Package execbroker runs commands for plugins: programs of the host's machine, in a sandbox of the kernel's.
//
// A Broker belongs to one plugin. Before anything starts, the command line is taken apart and each command in it held against rules
// (package judge). The command then runs in a process that the kernel holds to the granted files and programs (package confine), where each
// program is judged once more with its final arguments. Its network is one of its own, in which it finds the granted hosts and no others
// (package gateway). docs/exec.md says what is enforced by what.
package execbroker

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/hako-run/hako/host/broker/exec/confine"
	"github.com/hako-run/hako/host/broker/exec/gateway"
	"github.com/hako-run/hako/host/broker/exec/judge"
	"github.com/hako-run/hako/host/broker/outbound"
	"github.com/hako-run/hako/host/grant"
)

const (
	// maxRunning is how many commands of one plugin run at once; more wait for their turn.
	maxRunning = 8
	// maxHandles is how many commands one guest call may start.
	maxHandles = 16
)

// Options configures a Broker.
type Options struct {
	// Plugin is the plugin's name, for the remedies in errors.
	Plugin string
	// Rules returns the operator's rules, which come before judge's own. It is called for every command. Nil means none.
	Rules func() []judge.Rule
	// Environ is the host's environment, "NAME=value", of which commands get what is granted.
	Environ []string
	// TempDir is where each command gets a directory of its own, which is removed afterwards. Empty means os.TempDir.
	TempDir string
	// Limits bound each command; what is zero is DefaultLimits'.
	Limits confine.Limits
	// Proxy is an upstream proxy (http, https or socks5) for the connections of commands; see gateway.Options. Nil means none.
	Proxy *url.URL
	// Resolver looks up the names of hosts that commands connect to. Nil means net.DefaultResolver.
	Resolver outbound.Resolver
	// Observe, if set, is called once for every command when it is over or was refused, from many goroutines at once. So is
	// ObserveConnection for every connection of a command.
	Observe           func(Observation)
	ObserveConnection func(gateway.Observation)
	// Logger gets commands at debug level, without their arguments. Nil discards them.
	Logger *slog.Logger
}

// DefaultLimits bound a command where Options do not.
var DefaultLimits = confine.Limits{CPU: maxCPU, Memory: 2 << 30, Processes: 256, Files: 1024, FileSize: 1 << 30}

// Broker runs one plugin's commands. It is safe for concurrent use.
type Broker struct {
	plugin  string
	rules   func() []judge.Rule
	temp    string
	observe func(Observation)
	log     *slog.Logger

	roots roots
	// gateway connects commands with granted hosts. Nil: they have no network, or that of the host.
	gateway *gateway.Gateway
	// base is the part of every command's specification that does not change.
	base    confine.Spec
	running chan struct{}
}

// New returns a Broker for what was granted. Commands work on the files of mounts; those with deny globs are left out, because the kernel
// cannot hide a part of a directory.
//
// It fails where this machine cannot confine commands and the grant does not say to run them without, and where none of the granted
// programs or one of the mounts is there, and where a program lies in a mount that commands may write to.
func New(g *grant.Exec, mounts []grant.Mount, options Options) (*Broker, error) {
	b := &Broker{
		plugin: options.Plugin, rules: options.Rules, temp: options.TempDir, observe: options.Observe, log: options.Logger,
		running: make(chan struct{}, maxRunning),
	}
	if b.rules == nil {
		b.rules = func() []judge.Rule { return nil }
	}
	if b.temp == "" {
		b.temp = os.TempDir()
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	support := confine.Check()
	confines := support.Confines() && (len(g.Connect) == 0 || support.ConfinesNetwork())
	if !confines && !g.Unconfined {
		return nil, Unconfinable(b.plugin, g)
	}
	installed, missing := install(g.Programs)
	if len(installed.programs) == 0 {
		return nil, fmt.Errorf("none of the granted programs is on this machine: %s", strings.Join(missing, ", "))
	}
	if len(missing) > 0 {
		b.log.Warn("programs that are granted are not on this machine", "plugin", b.plugin, "programs", missing)
	}
	var err error
	if b.roots, err = newRoots(mounts); err != nil {
		return nil, err
	}
	for _, program := range installed.programs {
		if at := b.roots.holds(program.Path); at != "" {
			return nil, fmt.Errorf("%s lies in the mount %s, where commands could replace it: grant a program from elsewhere, or mount the directory read-only", program.Path, at)
		}
	}
	b.base = confine.Spec{
		Env:      environment(g.Env, options.Environ),
		Programs: installed.programs,
		Execute:  installed.execute,
		Read:     append(systemPaths(len(g.Connect) > 0), installed.read...),
		Limits:   limits(options.Limits),
		Loose:    !confines,
	}
	b.base.Read = append(b.base.Read, b.roots.readable()...)
	b.base.Write = b.roots.writable()
	return b, b.connect(g.Connect, support, &options)
}

// connect makes the gateway to granted hosts.
func (b *Broker) connect(hosts []string, support confine.Support, options *Options) error {
	if len(hosts) == 0 {
		return nil
	}
	made, err := gateway.New(hosts, gateway.Options{
		Plugin: b.plugin, Proxy: options.Proxy, Resolver: options.Resolver, Observe: options.ObserveConnection, Logger: options.Logger,
	})
	if err != nil {
		return err
	}
	b.base.Listen = made.Listen()
	if !support.Namespaces { // the network of the host, with its name servers
		b.base.Read = append(b.base.Read, existing("/etc/resolv.conf")...)
		return nil
	}
	b.gateway = made
	b.base.Env = replaceVariables(b.base.Env, made.Environ())
	return nil
}

// Unconfinable is the error of a machine that cannot hold commands to what g grants; nil if it can.
func Unconfinable(plugin string, g *grant.Exec) error {
	return unconfinable(confine.Check(), plugin, g)
}

func unconfinable(support confine.Support, plugin string, g *grant.Exec) error {
	switch {
	case !support.Confines():
		return fmt.Errorf("this machine cannot confine commands: %s. To run them all the same, with nothing but the rules to hold them: hako plugin approve %s --unconfined",
			support.Missing(), plugin)
	case len(g.Connect) > 0 && !support.ConfinesNetwork():
		return fmt.Errorf("this machine cannot hold commands to the hosts that are granted (%[1]s): %[2]s. To run them without a network: hako plugin approve %[3]s --connect ''. "+
			"To run them on the network of this machine, with every host in reach: hako plugin approve %[3]s --unconfined", strings.Join(g.Connect, ", "), support.Missing(), plugin)
	}
	return nil
}

// Idle returns a Broker that refuses every command, for a guest that is only asked what it offers.
func Idle() *Broker {
	return &Broker{rules: func() []judge.Rule { return nil }, temp: os.TempDir(), log: slog.New(slog.DiscardHandler), running: make(chan struct{}, 1)}
}

// limits are l with the defaults filled in.
func limits(l confine.Limits) confine.Limits {
	for _, field := range []struct{ have, want *uint64 }{
		{&l.Memory, &DefaultLimits.Memory}, {&l.Processes, &DefaultLimits.Processes}, {&l.Files, &DefaultLimits.Files}, {&l.FileSize, &DefaultLimits.FileSize},
	} {
		if *field.have == 0 {
			*field.have = *field.want
		}
	}
	if l.CPU == 0 {
		l.CPU = DefaultLimits.CPU
	}
	return l
}
