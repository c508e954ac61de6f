package authserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hako-run/hako/host/store"
)

const (
	// maxClients limits the registered clients.
	maxClients = 10_000
	// unusedAge is the age at which a client that nobody has logged in with is forgotten, and idleAge the time after
	// the last login.
	unusedAge = 24 * time.Hour
	idleAge   = 90 * 24 * time.Hour
)

// clientPrefix begins the IDs of registered clients.
const clientPrefix = "hako-client-"

// clients are the registered clients.
type clients struct{ store *store.Store }

var errFull = errors.New("too many clients have registered")

// add stores a client and returns its ID. If there are too many, a client that nobody has used makes room; without one
// the error is errFull.
func (c *clients) add(ctx context.Context, m *metadata, now time.Time) (string, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	id := clientPrefix + rand.Text()
	return id, c.store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			`DELETE FROM oauth_client WHERE used = 0 AND created < $1 OR used > 0 AND used < $2`,
			now.Add(-unusedAge).UnixMilli(), now.Add(-idleAge).UnixMilli())
		if err != nil {
			return err
		}
		var count int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM oauth_client`).Scan(&count); err != nil {
			return err
		}
		if count >= maxClients {
			result, err := tx.ExecContext(ctx, `DELETE FROM oauth_client WHERE id IN
				(SELECT id FROM oauth_client WHERE used = 0 ORDER BY created, id LIMIT 1)`)
			if err != nil {
				return err
			}
			if removed, err := result.RowsAffected(); err != nil || removed == 0 {
				return errors.Join(err, errFull)
			}
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO oauth_client (id, metadata, created, used) VALUES ($1, $2, $3, 0)`,
			id, string(data), now.UnixMilli())
		return err
	})
}

// find returns a client, or nil if there is none with the ID. It does not ask the store about IDs that are not add's:
// PostgreSQL fails on texts that are not UTF-8 or contain a NUL.
func (c *clients) find(ctx context.Context, id string) (*metadata, error) {
	if !strings.HasPrefix(id, clientPrefix) ||
		strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, nil
	}
	var data string
	err := c.store.View(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT metadata FROM oauth_client WHERE id = $1`, id).Scan(&data)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := parseMetadata([]byte(data))
	if err != nil {
		return nil, nil // a damaged row is no client
	}
	m.ID = id
	return m, nil
}

// register serves the registration of clients (RFC 7591). Clients get no secret.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	now := s.options.Now()
	if _, wait := s.registrations.Begin(s.proxies.Address(r), now); wait > 0 {
		refuseTooMany(w, wait)
		return
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, errMetadata.Error(), "The metadata is too large.")
		return
	}
	m, err := parseMetadata(data)
	if err != nil {
		kind := errMetadata
		if errors.Is(err, errRedirect) {
			kind = errRedirect
		}
		writeError(w, http.StatusBadRequest, kind.Error(), strings.TrimPrefix(err.Error(), kind.Error()+": "))
		return
	}
	m.ID, m.AuthMethod = "", "none"
	m.Grants, m.Responses = []string{grantCode, grantRefresh}, []string{"code"}
	m.ID, err = s.clients.add(r.Context(), m, now)
	switch {
	case errors.Is(err, errFull):
		writeError(w, http.StatusServiceUnavailable, "temporarily_unavailable", "Too many clients have registered.")
	case err != nil:
		s.unavailable(w, err)
	default:
		writeJSON(w, http.StatusCreated, struct {
			*metadata
			Issued int64 `json:"client_id_issued_at"`
		}{m, now.Unix()})
	}
}
