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
	"github.com/hako-run/hako/host/secret"
)

// minSecret is the minimum length of a token, in bytes. A shorter one could not be distinguished from other text in a
// response.
const minSecret = 8

// static is a static token.
type static struct {
	id     id
	spec   Spec
	secret *secret.Secret
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
	token, err := s.secret.Read(ctx)
	if err == nil {
		err = checkToken(token)
	}
	return token, err
}

// renew reads the source again, which may contain a new token.
func (s *static) renew(ctx context.Context, refused *broker.Credential, status int,
	_ []byte) (*broker.Credential, error) {
	if status != http.StatusUnauthorized {
		return nil, nil
	}
	s.secret.Forget()
	c, err := s.credential(ctx)
	if err != nil || c.Value == refused.Value {
		return nil, err
	}
	return c, nil
}

// status does not run commands.
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

// header returns the request header of spec for a token.
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

// accountOf returns an account identifier derived from a token.
func accountOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:8])
}

// checkToken checks that a token is a valid header value and long enough to be masked in responses. The error does not
// contain the token.
func checkToken(token string) error {
	if len(token) < minSecret {
		return fmt.Errorf("it has %d characters: one with fewer than %d cannot be hidden from plugins", len(token),
			minSecret)
	}
	for i := range len(token) {
		if token[i] < ' ' || token[i] > '~' {
			return fmt.Errorf("byte %d is not a printable ASCII character, which a header requires", i+1)
		}
	}
	return nil
}
