package console

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/manifest"
)

// TokenItem is a token for people and programs. It never has the token's text or hash.
type TokenItem struct {
	// ID is the beginning of the text. Empty means that the token is in the configuration.
	ID     string   `json:"id,omitempty"`
	Name   string   `json:"name"`
	User   string   `json:"user"`
	Tenant string   `json:"tenant,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// Role is empty for a token of an MCP client.
	Role Role `json:"role,omitempty"`
	// State is "valid", "expired" or "revoked".
	State   string    `json:"state"`
	Expires time.Time `json:"expires,omitzero"`
	Created time.Time `json:"created,omitzero"`
	Creator string    `json:"creator,omitempty"`
	Used    time.Time `json:"used,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	Revoker string    `json:"revoker,omitempty"`
	// Setting is the token's key in the configuration.
	Setting string `json:"setting,omitempty"`
}

func newTokenItem(r *bearer.Record, now time.Time) TokenItem {
	state := "valid"
	switch {
	case !r.Revoked.IsZero():
		state = "revoked"
	case r.Expired(now):
		state = "expired"
	}
	return TokenItem{
		ID: r.ID, Name: r.Name, User: r.Owner(), Tenant: r.Tenant, Scopes: r.Scopes, Role: Role(r.Role), State: state,
		Expires: r.Expires, Created: r.Created, Creator: r.Creator, Used: r.Used, Revoked: r.Revoked,
		Revoker: r.Revoker,
	}
}

// TokenItems lists tokens of the store, and then those of the configuration.
func TokenItems(records []*bearer.Record, configured []bearer.Token, now time.Time) []TokenItem {
	items := []TokenItem{}
	for _, r := range records {
		items = append(items, newTokenItem(r, now))
	}
	for _, t := range configured {
		item := newTokenItem(&bearer.Record{Token: t}, now)
		item.Setting = "http.auth.tokens"
		if t.Role != "" {
			item.Setting = "console.tokens"
		}
		items = append(items, item)
	}
	return items
}

// tokens lists the tokens of the store and the configuration.
func (c *Console) tokens(q *request) (any, error) {
	var records []*bearer.Record
	if issued := c.logins.Load().issued; issued != nil {
		var err error
		if records, err = issued.List(q.Context()); err != nil {
			return nil, err
		}
	}
	return listed(TokenItems(records, c.options.Settings.Tokens(), c.now())), nil
}

var (
	faultTokenTaken = &fault{code: codeConflict, text: manifest.Text{
		"en": "A valid token already has this name.", "ja": "この名前の有効なトークンがすでにあります。",
	}, remedy: manifest.Text{
		"en": "Choose another name, or revoke that token first.", "ja": "別の名前にするか、先にそのトークンを失効させてください。",
	}}
	faultNoToken = &fault{code: codeNotFound, text: manifest.Text{
		"en": "There is no such token in the store, or it is no longer valid.", "ja": "そのトークンは存在しないか、すでに無効です。",
	}, remedy: manifest.Text{"en": "Reload the list.", "ja": "一覧を再読み込みしてください。"}}
)

// faultOfToken converts an error of bearer.Issued.
func faultOfToken(err error) error {
	var wrong *bearer.InvalidError
	switch {
	case errors.As(err, &wrong):
		return invalid("%s", wrong.Reason)
	case errors.Is(err, bearer.ErrTaken):
		return faultTokenTaken
	case errors.Is(err, bearer.ErrNone):
		return faultNoToken
	}
	return err
}

// createToken creates a token and answers with its text, which nobody can read again.
func (c *Console) createToken(q *request) (any, error) {
	var body struct {
		Name, User, Tenant string
		Scopes             []string
		Role               Role
		Expires            time.Time
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	issued := c.logins.Load().issued
	switch {
	case issued == nil:
		return nil, faultStore
	case body.Role != "" && !slices.Contains(Roles, body.Role):
		return nil, invalid("unknown role %q: use viewer, approver or admin", body.Role)
	}
	t := bearer.Token{Name: body.Name, User: body.User, Tenant: body.Tenant, Scopes: body.Scopes,
		Role: string(body.Role), Expires: body.Expires}
	o := TokenOperation(&t)
	var text string
	var r *bearer.Record
	err := c.audited(q, o, func() (err error) {
		text, r, err = issued.Create(q.lasting(), t, q.session.Name, c.options.Settings.Tokens())
		if err == nil {
			o.Detail["id"] = r.ID
		}
		return err
	})
	if err != nil {
		return nil, faultOfToken(err)
	}
	return NewToken(text, r), nil
}

// CreatedToken is a new token with its text.
type CreatedToken struct {
	Text  string    `json:"text"`
	Token TokenItem `json:"token"`
}

// NewToken describes a token that was just created.
func NewToken(text string, r *bearer.Record) CreatedToken {
	return CreatedToken{text, newTokenItem(r, r.Created)}
}

// TokenOperation is the record of the creation of a token.
func TokenOperation(t *bearer.Token) *audit.Operation {
	o := &audit.Operation{Action: "token.create", Target: audit.Target{Name: t.Name},
		Detail: map[string]string{"user": t.Owner()}}
	for key, value := range map[string]string{
		"role": t.Role, "tenant": t.Tenant, "scopes": strings.Join(t.Scopes, " "),
	} {
		if value != "" {
			o.Detail[key] = value
		}
	}
	if !t.Expires.IsZero() {
		o.Detail["expires"] = t.Expires.UTC().Format(time.RFC3339)
	}
	return o
}

// revokeToken ends a token of the store, and with it the sessions that were begun with it.
func (c *Console) revokeToken(q *request) (any, error) {
	issued, id := c.logins.Load().issued, q.PathValue("id")
	if issued == nil {
		return nil, faultStore
	}
	o := &audit.Operation{Action: "token.revoke", Detail: map[string]string{"id": id}}
	var r *bearer.Record
	err := c.audited(q, o, func() (err error) {
		if r, err = issued.Revoke(q.lasting(), id, q.session.Name); err == nil {
			o.Target.Name = r.Name
		}
		return err
	})
	if err != nil {
		return nil, faultOfToken(err)
	}
	c.endUnwanted(c.logins.Load())
	return newTokenItem(r, c.now()), nil
}
