package schema

import (
	"bytes"
	"strings"
	"testing"
)

// The values are made up; each is of the shape of a kind of credential.
func TestSecretsAreFoundAndNeverShown(t *testing.T) {
	for name, test := range map[string]struct{ text, secret string }{
		"GitHub":                {"env: {A: ghp_16C7e42F292c6912E7710c838347Ae178B4a}", "16C7e42F"},
		"GitHub, fine-grained":  {"env: {A: github_pat_11ABCDEFG0abcdefghijkl_mnop}", "11ABCDEFG0"},
		"OpenAI":                {"env: {A: sk-proj-abcdefGHIJKL0123456789mnop}", "abcdefGHIJKL"},
		"Slack":                 {"env: {A: 'xoxb-1234567890-abcdefghij'}", "1234567890"},
		"AWS":                   {"env: {A: AKIAIOSFODNN7QWERTYU}", "IOSFODNN7"},
		"a JWT":                 {"env: {A: eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl}", "IiOiIxMjM0"},
		"by its name":           {"env: {SHOP_API_KEY: Zx81kQp0aLm2nB7vC4dE}", "kQp0aLm2"},
		"by a name in one word": {"env: {shopToken: Zx81kQp0aLm2nB7vC4dE}", "kQp0aLm2"},
		"after Bearer":          {"env: {AUTHORIZATION: Bearer Zx81kQp0aLm2nB7vC4dE}", "kQp0aLm2"},
		"a number by its name":  {"env: {PASSWORD: a1b2c3d4e5f6g7h8i9}", "c3d4e5f6"},
		"a chosen password":     {"env: {DB_PASSWORD: 9xKq2LmV7p}", "Kq2LmV"},
		"PGPASSWORD":            {"env: {PGPASSWORD: correcthorse}", "correcthorse"},
		"a password in letters": {"env: {PASSWORD: hunter2xyz}", "hunter2x"},
		"a password argument":   {"args: [--password, hunter2xyz]", "hunter2x"},
		"a header":              {"args: [--header, 'Authorization: Bearer Zx81kQp0aLm2nB7vC4dE']", "kQp0aLm2"},
		"a header with =":       {"args: ['--header=X-Api-Key: Zx81kQp0aLm2nB7vC4dE']", "kQp0aLm2"},
		"an argument":           {"args: [--api-key, Zx81kQp0aLm2nB7vC4dE]", "kQp0aLm2"},
		"an argument with =":    {"args: ['--token=Zx81kQp0aLm2nB7vC4dE']", "kQp0aLm2"},
		"a default":             {"env: {A: '${A:-ghp_16C7e42F292c6912E7710c838347Ae178B4a}'}", "16C7e42F"},
		"the password of a URL": {"args: ['postgres://me:hunter22@db/x']", "hunter22"},
		"a key of many lines":   {"env:\n      A: |\n        -----BEGIN RSA PRIVATE KEY-----\n        MIIEpAIBAAKCAQEA\n        -----END RSA PRIVATE KEY-----", "MIIEpAIBAAK"},
		"in an unknown place":   {"env: {A: ghp_16C7e42F292c6912E7710c838347Ae178B4a}\n    tokn: ghp_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F"},
		"where a number stands": {"call_timeout: ghp_16C7e42F292c6912E7710c838347Ae178B4a\n    env: {A: ghp_16C7e42F292c6912E7710c838347Ae178B4a}", "16C7e42F"},
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte("servers:\n  a:\n    command: x\n    " + test.text + "\n")
			cfg, findings := Load("a.yaml", text, testEnv)
			found := false
			for _, f := range findings {
				found = found || f.ID == "secret" && f.Level == Warning
			}
			if !found {
				t.Errorf("not found: %v", findings)
			}
			var out bytes.Buffer
			findings.Render(&out, cfg.Mask(text), false)
			for _, f := range findings {
				out.WriteString(f.Message + f.Hint)
			}
			if strings.Contains(out.String(), test.secret) {
				t.Errorf("it shows:\n%s", out.String())
			}
			if masked := cfg.Mask(text); len([]rune(string(masked))) != len([]rune(string(text))) {
				t.Errorf("places have moved:\n%s", masked)
			}
		})
	}
}

func TestWhatIsNoSecret(t *testing.T) {
	for _, text := range []string{
		"env: {GITHUB_TOKEN: '${TOKEN}'}",
		"env: {API_KEY: your-api-key-goes-here-1234}",
		"env: {API_KEY: changeme, TOKEN: '', SECRET: xxxxxxxxxxxxxxxxxxxx1}",
		"env: {KEY_FILE: /home/me/keys/server-2048.pem, SSH_KEY: /home/me/.ssh/id_ed25519_2}",
		"env: {TOKEN_URL: 'https://login.example/oauth2/v2.0/token'}",
		"env: {COMMIT: 9fceb02d0ae598e95dc970b74767f19372d61af8}",
		"env: {DATABASE_URL: 'postgres://me:${PASSWORD}@db/x'}",
		"env: {MONKEY: Zx81kQp0aLm2nB7vC4dE}",
		"env: {DB_PASSWORD: changeme123, PASSWORD: your-password, PGPASSWORD: my_password}",
		"env: {DB_PASSWORD: short, PASSWORD: '${PASSWORD}', PASSWORD_FILE: /run/secrets/password}",
		"args: [--header, 'Accept: application/json', -H, 'Authorization: Bearer ${TOKEN_OF_SHOP_1}', 'time: 12:30:00']",
		"args: [--keyboard, us, --timeout, '12345678901234567890']",
		"args: ['@modelcontextprotocol/server-github@2025.4.8']",
	} {
		_, findings := Load("a.yaml", []byte("servers:\n  a:\n    command: x\n    "+text+"\n"), testEnv)
		for _, f := range findings {
			if f.ID == "secret" {
				t.Errorf("%s: %v", text, f)
			}
		}
	}
}

func TestTextThatCannotBeParsedIsMaskedToo(t *testing.T) {
	text := []byte("{ghp_16C7e42F292c6912E7710c838347Ae178B4a")
	cfg, findings := Load("a.yaml", text, testEnv)
	if cfg != nil || !findings.HasErrors() {
		t.Fatal(cfg, findings)
	}
	if got := cfg.Mask(text); bytes.Contains(got, []byte("16C7e42F")) || len(got) != len(text) {
		t.Errorf("%s", got)
	}
}
