package sessionstore

import (
	"encoding/base64"
	"fmt"

	"github.com/hako-run/hako/internal/sealed"
)

// EventPlace is the place of an event on a stream.
func EventPlace(stream string, number int) string {
	return fmt.Sprintf("event %d of %s", number, stream)
}

// MailPlace is the place of the body of a mail. The ID is empty for mail that gets its ID when it is sent.
func MailPlace(kind, id string) string { return fmt.Sprintf("mail %q %s", kind, id) }

// Seal encrypts contents for the store: only those who know the ID can read them, the client and the replicas that
// serve it. The store knows the ID's Key. The contents are bound to their place: who writes to the store
// cannot move them to another one.
func Seal(id, place string, data []byte) string {
	return base64.RawStdEncoding.EncodeToString(sealed.Seal(id, place, data))
}

// Unseal returns the contents that were sealed with this ID and place.
func Unseal(id, place, text string) ([]byte, error) {
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, sealed.ErrSealed
	}
	return sealed.Open(id, place, data)
}
