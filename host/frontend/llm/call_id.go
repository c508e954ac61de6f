package llm

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
)

// newCallID returns an ID for a call. Every provider accepts nine letters and digits, and Mistral nothing else.
func newCallID() string { return rand.Text()[:9] }

// origin is the model that wrote a message.
type origin struct{ provider, model string }

func (x *exchange) origin() origin { return origin{x.spec.Provider, x.spec.Model} }

// modelID is the ID that a model gave a call. It is sent back to that model only: providers accept different characters
// and lengths.
type modelID struct {
	origin
	id string
}

// setCallIDs replaces the IDs of calls and results in normalized messages by the IDs to send, and returns these. A call
// is sent with the ID that the requested model gave it, or with its own ID if that is empty or was sent for an earlier
// call: providers reject empty and repeated IDs. The same conversation has the same IDs in every request, as caches of
// prompts require.
func setCallIDs(messages []Message, requested origin) map[string]bool {
	sent, number := map[string]bool{}, 0
	for i := range messages {
		if len(messages[i].Calls) == 0 {
			continue
		}
		calls, results := slices.Clone(messages[i].Calls), messages[i+1].Results
		for j := range calls {
			id := calls[j].ID
			if given := calls[j].given; given.origin == requested && given.id != "" && !sent[given.id] {
				id = given.id
			}
			for id == "" || sent[id] {
				number++
				id = fmt.Sprintf("call%05d", number)
			}
			sent[id], calls[j].ID, results[j].CallID = true, id, id
		}
		messages[i].Calls = calls
	}
	return sent
}

// withCallIDs returns the parts of a State with the IDs of calls. The parts of type kind are the calls, in order, and
// have their IDs in the member. It returns nil if there are more or fewer parts of that type than calls.
func withCallIDs(parts []json.RawMessage, calls []Call, kind, member string) []json.RawMessage {
	parts, next := slices.Clone(parts), 0
	for i, part := range parts {
		var head struct{ Type string }
		if decodeEvent(part, &head) != nil || head.Type != kind {
			continue
		}
		if next == len(calls) {
			return nil
		}
		parts[i] = withCallID(part, calls[next].ID, member)
		next++
	}
	if next < len(calls) {
		return nil
	}
	return parts
}

// withCallID returns the part of one call with the ID. If that is another than the model's, an ID of the part itself is
// removed, because a model that repeats the one may repeat the other.
func withCallID(part json.RawMessage, id, member string) json.RawMessage {
	var members map[string]json.RawMessage
	if decodeEvent(part, &members) != nil {
		return part
	}
	var given string
	if json.Unmarshal(members[member], &given) == nil && given == id {
		return part
	}
	delete(members, "id")
	members[member], _ = json.Marshal(id) // a string always encodes
	changed, err := json.Marshal(members)
	if err != nil {
		return part
	}
	return changed
}
