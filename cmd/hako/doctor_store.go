package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
)

const (
	// slowStore is a latency that every call would feel, and maxSkew how far the clocks of a machine and of its
	// database may be apart: certificates are judged by the machine's.
	slowStore = 20 * time.Millisecond
	maxSkew   = 2 * time.Second
	// oldestPostgres is the oldest version that its makers still keep.
	oldestPostgres = 14
)

// storeFindings look at the store.
func (a *app) storeFindings(ctx context.Context, c *config.Config) []finding {
	if !store.IsURL(c.Store) {
		return []finding{directory("store", "store", c.StateDir())}
	}
	findings := []finding{directory("store", "postgres.dir", c.StateDir())}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var health *store.Health
	var replicas []store.Replica
	err := a.withShared(ctx, c, func(s *store.Store) (err error) {
		if replicas, err = s.Replicas(ctx); err != nil {
			return err
		}
		health, err = s.Health(ctx)
		return err
	})
	if err != nil {
		return append(findings, finding{levelError, "database", err.Error(),
			"docs/store.md says what a database needs"})
	}
	findings = append(findings, finding{levelOK, "database",
		fmt.Sprintf("%s, PostgreSQL %s, answers in %s, %d replicas", store.Redacted(c.Store), health.Version,
			health.Latency.Round(10*time.Microsecond), len(replicas)), ""})
	findings = append(findings, secretFindings(c)...)
	return append(findings, databaseFindings(health)...)
}

// secretFindings say which keys are missing that replicas need to have alike.
func secretFindings(c *config.Config) (findings []finding) {
	if c.Audit.Key.IsZero() && !c.Audit.Disabled {
		findings = append(findings, finding{levelError, "audit key", "the audit log in the database has no key",
			"set audit.key, to what openssl rand -base64 32 prints"})
	}
	if c.SecretsKey.IsZero() {
		findings = append(findings, finding{levelWarning, "secrets key",
			"connections of credentials cannot be kept in the database without a key",
			"set secrets.key, to what openssl rand -base64 32 prints"})
	}
	return findings
}

// databaseFindings say what is not as it should be.
func databaseFindings(h *store.Health) (findings []finding) {
	note := func(bad bool, level, problem, remedy string) {
		if bad {
			findings = append(findings, finding{level, "database", problem, remedy})
		}
	}
	var major int
	_, _ = fmt.Sscanf(h.Version, "%d", &major)
	note(major < oldestPostgres, levelWarning, fmt.Sprintf("PostgreSQL %s is not kept by its makers any more",
		h.Version), "bring it up to date")
	note(h.ReadOnly, levelError, "nothing can be written",
		"name the primary, or add target_session_attrs=read-write to the URL")
	note(!h.CanCreate, levelError, "this user may not make tables",
		"GRANT CREATE ON SCHEMA public TO the user, or make the user the database's owner")
	note(!h.Encrypted && !h.Local, levelWarning, "the connection is not encrypted",
		"add sslmode=verify-full and sslrootcert=FILE to the URL")
	note(h.Latency > slowStore, levelWarning, fmt.Sprintf("each question takes %s, and a call asks several",
		h.Latency.Round(time.Millisecond)), "run hako nearer to the database")
	note(h.Skew.Abs() > maxSkew, levelWarning,
		fmt.Sprintf("the clocks are %s apart", h.Skew.Abs().Round(time.Millisecond)),
		"keep both with NTP: this machine's says whether certificates are valid, and the database's everything else")
	note(h.Connections > h.MaxConnections*8/10, levelWarning, fmt.Sprintf("%d of %d connections are taken",
		h.Connections, h.MaxConnections), "raise max_connections of the server, or lower postgres.connections")
	return findings
}
