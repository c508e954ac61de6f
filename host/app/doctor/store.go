package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/store"
)

const (
	// slowStore is a latency that slows down every call. maxSkew is how far the clocks of the machine and of the
	// database may differ: the machine's clock decides whether certificates are valid.
	slowStore = 20 * time.Millisecond
	maxSkew   = 2 * time.Second
	// oldestPostgres is the oldest version that is still maintained.
	oldestPostgres = 14
)

// storeTimeout bounds the examination of a database.
const storeTimeout = time.Minute

// database examines the database that holds the store.
func database(ctx context.Context, c *config.Config, s *store.Store) []Finding {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	replicas, err := s.Replicas(ctx)
	var health *store.Health
	if err == nil {
		health, err = s.Health(ctx)
	}
	if err != nil {
		return []Finding{{LevelError, "database", err.Error(), "docs/store.md describes what a database needs"}}
	}
	findings := []Finding{{LevelOK, "database",
		fmt.Sprintf("%s, PostgreSQL %s, answers in %s, replicas: %d", store.Redacted(c.Store), health.Version,
			health.Latency.Round(10*time.Microsecond), len(replicas)), ""}}
	if c.Audit.Key.IsZero() && !c.Audit.Disabled {
		findings = append(findings, Finding{LevelError, "audit key", "the audit log in the database has no key",
			"set audit.key, to what openssl rand -base64 32 prints"})
	}
	if c.SecretsKey.IsZero() {
		findings = append(findings, Finding{LevelWarning, "secrets key",
			"connections of credentials cannot be kept in the database without a key",
			"set secrets.key, to what openssl rand -base64 32 prints"})
	}
	return append(findings, databaseHealth(health)...)
}

// databaseHealth finds what is wrong with a database.
func databaseHealth(h *store.Health) (findings []Finding) {
	note := func(bad bool, level, problem, remedy string) {
		if bad {
			findings = append(findings, Finding{level, "database", problem, remedy})
		}
	}
	var major int
	_, _ = fmt.Sscanf(h.Version, "%d", &major)
	note(major < oldestPostgres, LevelWarning, fmt.Sprintf("PostgreSQL %s is not maintained any more",
		h.Version), "update it")
	note(h.ReadOnly, LevelError, "nothing can be written",
		"name the primary, or add target_session_attrs=read-write to the URL")
	note(!h.CanCreate, LevelError, "this user may not create tables",
		"GRANT CREATE ON SCHEMA public TO the user, or make the user the database's owner")
	note(!h.Encrypted && !h.Local, LevelWarning, "the connection is not encrypted",
		"add sslmode=verify-full and sslrootcert=FILE to the URL")
	note(h.Latency > slowStore, LevelWarning, fmt.Sprintf("each question takes %s, and a call asks several",
		h.Latency.Round(time.Millisecond)), "run hako closer to the database")
	note(h.Skew.Abs() > maxSkew, LevelWarning,
		fmt.Sprintf("the clocks are %s apart", h.Skew.Abs().Round(time.Millisecond)),
		"synchronize both with NTP: certificates are checked with this machine's clock, everything else with the "+
			"database's")
	note(h.Connections > h.MaxConnections*8/10, LevelWarning, fmt.Sprintf("%d of %d connections are in use",
		h.Connections, h.MaxConnections), "raise max_connections of the server, or lower postgres.connections")
	return findings
}
