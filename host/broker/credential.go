package broker

// Credential is a secret of the operator's, ready to be sent with a guest's requests. It does not change once it is made.
type Credential struct {
	// Header and Value are the request header that carries it.
	Header, Value string
	// Secrets are the texts inside Value that must not reach a guest.
	Secrets []string
	// Account changes whenever the credential may stand for another account, so that answers to one are not kept for another. It
	// is no secret, but means nothing outside of this process.
	Account string
	// Public are facts about the credential that the guest may know, such as the company that it is for.
	Public map[string]string
	// Renewal is a fact that the guest learns when a server refuses the credential, for the operator to be told: RenewCommand with the
	// command that renews it, or RenewSetting with the setting that says where it comes from.
	Renewal map[string]string
}

// Names of what Credential.Renewal has.
const (
	RenewCommand = "renew_command"
	RenewSetting = "renew_setting"
)
