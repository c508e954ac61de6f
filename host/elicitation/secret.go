package elicitation

import (
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// secretWords matches what a form must not ask for: "Servers MUST NOT use form mode elicitation to request sensitive
// information" such as passwords, keys, tokens and payment data (MCP, elicitation).
var secretWords = lazyregexp.New(
	`(?i)\b(pass ?words?|pass ?phrases?|pass ?codes?|pass ?wd|pwd|secrets?|credentials?|api ?keys?|(access|secret|private|signing|encryption) ?keys?|(access|auth|api|bearer|refresh|session|id|secret|personal access|github|slack) ?tokens?|client ?secrets?|(credit|debit)? ?card ?(numbers?|no)|credit ?cards?|cvv2?|cvc2?|security ?codes?|one ?time ?(codes?|pass ?words?)|otp|pin|pin ?(codes?|numbers?)|iban|ssn|social security numbers?)\b` +
		`|パスワード|パスフレーズ|パスコード|暗証番号|秘密鍵|シークレット|(?:API|アクセス|認証) ?(?:キー|トークン)|クレジットカード|カード番号|セキュリティコード|ワンタイム|認証コード|認証情報|マイナンバー`)

var (
	camel     = lazyregexp.New(`([a-z0-9])([A-Z])`)
	separator = strings.NewReplacer("_", " ", "-", " ", ".", " ")
)

func namesSecret(text string) bool {
	return secretWords().MatchString(separator.Replace(camel().ReplaceAllString(text, "$1 $2")))
}

// checkSecrets rejects forms that ask for a secret. The message is checked as well if the form has a free text field.
func (f *Form) checkSecrets(message string) error {
	for i := range f.Fields {
		field := &f.Fields[i]
		typed := field.Kind == Text || field.Kind == Number || field.Kind == Integer
		if typed && namesSecret(field.Name+"\n"+field.Title+"\n"+field.Description) || field.Kind == Text &&
			field.Format == "" && namesSecret(message) {
			return rule(
				"it asks for a secret in a form (the field %s), which MCP forbids: passwords, keys and payment data are asked for by url", field.Name)
		}
	}
	return nil
}
