package credential

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"os/exec"
	"strings"

	"github.com/hako-run/hako/host/broker"
)

// minSecret is the shortest token, in bytes: a shorter one could not be told from other text in an answer.
const minSecret = 8

// static is a token that the operator was given.
type static struct {
	id     id
	spec   Spec
	secret secret
}

func newStatic(i id, spec Spec) *static {
	return &static{id: i, spec: spec, secret: secret{source: spec.Token}}
}

func (s *static) credential(ctx context.Context) (*broker.Credential, error) {
	token, err := s.read(ctx)
	if err != nil {
		return nil, unusablef(err, "the credential %s cannot be read: see hako connect status", s.id)
	}
	h := header(s.spec, token, accountOf(token))
	h.Renewal = map[string]string{broker.RenewSetting: s.id.setting() + ".token"}
	return h, nil
}

func (s *static) read(ctx context.Context) (string, error) {
	token, err := s.secret.read(ctx)
	if err == nil {
		err = checkToken(token)
	}
	return token, err
}

// renew asks the source again: somebody may have put a new token there.
func (s *static) renew(ctx context.Context, refused *broker.Credential, status int, _ []byte) (*broker.Credential, error) {
	if status != http.StatusUnauthorized {
		return nil, nil
	}
	s.secret.forget()
	c, err := s.credential(ctx)
	if err != nil || c.Value == refused.Value {
		return nil, err
	}
	return c, nil
}

// status looks without running commands.
func (s *static) status(ctx context.Context) Status {
	status := Status{State: Ready}
	source := s.spec.Token
	if len(source.Command) > 0 {
		if _, err := exec.LookPath(source.Command[0]); err != nil {
			status.fail(err.Error())
		}
		return status
	}
	if _, err := s.read(ctx); err != nil {
		status.fail(err.Error())
	}
	return status
}

// header puts a token into the header that spec wants.
func header(spec Spec, token, account string) *broker.Credential {
	c := &broker.Credential{Header: spec.Header, Value: token, Secrets: []string{token}, Account: account}
	switch spec.Scheme {
	case "":
		return c
	case "Basic": // RFC 7617
		encoded := base64.StdEncoding.EncodeToString([]byte(token))
		c.Value, c.Secrets = encoded, append(c.Secrets, encoded)
		if _, password, _ := strings.Cut(token, ":"); len(password) >= minSecret {
			c.Secrets = append(c.Secrets, password)
		}
	}
	c.Value = spec.Scheme + " " + c.Value
	return c
}

// accountOf tells accounts apart by their token.
func accountOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:8])
}

// checkToken holds that a token can be a header's value, and be found in an answer. The token is not in the error.
func checkToken(token string) error {
	if len(token) < minSecret {
		return fmt.Errorf("it has %d characters: one of fewer than %d cannot be kept from plugins", len(token), minSecret)
	}
	for i := range len(token) {
		if token[i] < ' ' || token[i] > '~' {
			return fmt.Errorf("byte %d is no printable ASCII character, as those of a header are", i+1)
		}
	}
	return nil
}
