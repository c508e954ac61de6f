package console

import (
	"errors"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/identity"
	"github.com/hako-run/hako/host/manifest"
)

// blockList lists the blocked users and the issuers at which users can be blocked.
type blockList struct {
	Items   []bearer.Block `json:"items"`
	Issuers []string       `json:"issuers"`
}

func (c *Console) blocks(q *request) (any, error) {
	list := blockList{Items: []bearer.Block{}, Issuers: c.options.Settings.Issuers()}
	if issued := c.logins.Load().issued; issued != nil {
		blocks, err := issued.Blocks(q.Context())
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, blocks...)
	}
	return list, nil
}

var faultBlocks = &fault{code: codeConflict, text: manifest.Text{
	"en": "Too many users are blocked.", "ja": "ブロックされているユーザーが多すぎます。",
}, remedy: manifest.Text{
	"en": "Unblock users whose accounts their identity provider has disabled.",
	"ja": "ID プロバイダーのアカウントがすでに停止されているユーザーのブロックを解除してください。",
}}

var faultNotBlocked = &fault{code: codeNotFound, text: manifest.Text{
	"en": "This user is not blocked.", "ja": "このユーザーはブロックされていません。",
}, remedy: manifest.Text{"en": "Reload the list.", "ja": "一覧を再読み込みしてください。"}}

// blockUser refuses the tokens and logins of a user of one issuer, or of all configured ones if none is named.
func (c *Console) blockUser(q *request) (any, error) {
	var body struct{ User, Issuer string }
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	now, issuers := c.logins.Load(), c.options.Settings.Issuers()
	if body.Issuer != "" {
		if !slices.Contains(issuers, body.Issuer) {
			return nil, notFound("issuer", body.Issuer)
		}
		issuers = []string{body.Issuer}
	}
	switch {
	case now.issued == nil:
		return nil, faultStore
	case identity.Check(body.User) != nil:
		return nil, invalid("%q cannot be the name of a user", body.User)
	case len(issuers) == 0:
		return nil, invalid("no issuer is configured (http.auth, console.oidc)")
	}
	err := c.audited(q, BlockOperation("user.block", body.User, issuers), func() error {
		for _, issuer := range issuers {
			if err := now.issued.Block(q.lasting(), issuer, body.User, q.session.Name); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, bearer.ErrBlocks) {
		return nil, faultBlocks
	}
	if err != nil {
		return nil, err
	}
	c.endUnwanted(now)
	return c.blocks(q)
}

// unblockUser undoes blockUser for one issuer, which need not be configured any more.
func (c *Console) unblockUser(q *request) (any, error) {
	var body struct{ User, Issuer string }
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	issued := c.logins.Load().issued
	if issued == nil {
		return nil, faultStore
	}
	err := c.audited(q, BlockOperation("user.unblock", body.User, []string{body.Issuer}), func() error {
		was, err := issued.Unblock(q.lasting(), body.Issuer, body.User)
		if err == nil && !was {
			return faultNotBlocked
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.blocks(q)
}

// BlockOperation is the record of blocking or unblocking a user at issuers.
func BlockOperation(action, user string, issuers []string) *audit.Operation {
	return &audit.Operation{Action: action, Target: audit.Target{Name: user},
		Detail: map[string]string{"issuers": strings.Join(issuers, " ")}}
}
