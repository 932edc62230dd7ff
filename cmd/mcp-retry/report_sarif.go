package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// The parts of SARIF 2.1.0 that a report of findings has. They are written out here because what a library offers is these
// same structs, with a JSON Schema validator and its dependencies in tow; a test holds the output against the standard's schema.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool       `json:"tool"`
		ColumnKind string          `json:"columnKind"`
		Artifacts  []sarifArtifact `json:"artifacts"`
		Results    []sarifResult   `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string       `json:"id"`
		Name    string       `json:"name"`
		Short   sarifMessage `json:"shortDescription"`
		Full    sarifMessage `json:"fullDescription"`
		Help    sarifMessage `json:"help"`
		Default sarifDefault `json:"defaultConfiguration"`
	}
	sarifDefault struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifArtifact struct {
		Location sarifArtifactLocation `json:"location"`
	}
	sarifArtifactLocation struct {
		URI   string `json:"uri"`
		Index int    `json:"index"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifMessage      `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Fixes        []sarifFix        `json:"fixes,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifactLocation `json:"artifactLocation"`
		Region   sarifRegion           `json:"region"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
		EndLine     int `json:"endLine"`
		EndColumn   int `json:"endColumn"` // of the character after the last
	}
	sarifFix struct {
		Description sarifMessage  `json:"description"`
		Changes     []sarifChange `json:"artifactChanges"`
	}
	sarifChange struct {
		Artifact     sarifArtifactLocation `json:"artifactLocation"`
		Replacements []sarifReplacement    `json:"replacements"`
	}
	sarifReplacement struct {
		Deleted  sarifRegion  `json:"deletedRegion"`
		Inserted sarifMessage `json:"insertedContent"`
	}
)

// reportSARIF is for code scanning (SARIF 2.1.0).
func reportSARIF(w io.Writer, files []checkedFile, _ reportStyle) error {
	run := sarifRun{
		Tool: sarifTool{sarifDriver{
			Name: "mcp-retry", Version: version(), InformationURI: "https://github.com/bentabol/mcp-retry", Rules: []sarifRule{},
		}},
		ColumnKind: "unicodeCodePoints", Artifacts: []sarifArtifact{}, Results: []sarifResult{},
	}
	rules := map[string]int{}
	for i, file := range files {
		at := sarifArtifactLocation{URI: fileURI(file.name), Index: i}
		run.Artifacts = append(run.Artifacts, sarifArtifact{at})
		seen := map[string]int{}
		for _, f := range file.findings {
			index, known := rules[f.ID]
			if !known {
				index = len(rules)
				rules[f.ID] = index
				run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRuleOf(f))
			}
			print := fingerprint(file, f)
			seen[print]++
			result := sarifResult{
				RuleID: run.Tool.Driver.Rules[index].ID, RuleIndex: index, Level: f.Level.String(), Message: sarifMessage{Text: advice(f)},
				Locations:    []sarifLocation{{sarifPhysical{at, sarifRegionOf(f.Pos)}}},
				Fingerprints: map[string]string{"finding/v1": fmt.Sprintf("%s:%d", print, seen[print])},
			}
			if f.Fix.Pos.Line > 0 {
				result.Fixes = []sarifFix{{
					Description: sarifMessage{Text: "write " + f.Fix.Text},
					Changes:     []sarifChange{{at, []sarifReplacement{{sarifRegionOf(f.Fix.Pos), sarifMessage{Text: f.Fix.Text}}}}},
				}}
			}
			run.Results = append(run.Results, result)
		}
	}
	return writeJSON(w, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

func sarifRuleOf(f schema.Finding) sarifRule {
	e, _ := schema.Lookup(f.ID) // a test says that there is one
	return sarifRule{
		ID: e.Code(), Name: e.ID, Short: sarifMessage{Text: e.Title}, Full: sarifMessage{Text: e.Why},
		Help: sarifMessage{
			Text:     e.Fix,
			Markdown: e.Why + "\n\n" + e.Fix + "\n\n```yaml\n" + e.Good + "\n```\n",
		},
		Default: sarifDefault{Level: e.Level.String()},
	}
}

func sarifRegionOf(p schema.Pos) sarifRegion {
	line, col := max(p.Line, 1), max(p.Col, 1)
	return sarifRegion{StartLine: line, StartColumn: col, EndLine: line, EndColumn: col + max(p.Len, 1)}
}

// fileURI is a path as a URI: relative if the path is.
func fileURI(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
		if !strings.HasPrefix(u.Path, "/") { // a drive's letter
			u.Path = "/" + u.Path
		}
	}
	return u.String()
}

// fingerprint tells findings apart whatever lines are added before them: by rule, and by the text of the line.
func fingerprint(file checkedFile, f schema.Finding) string {
	n := 0
	for line := range strings.Lines(string(file.text)) {
		if n++; n == f.Pos.Line {
			sum := sha256.Sum256([]byte(f.ID + "\x00" + strings.TrimSpace(line)))
			return hex.EncodeToString(sum[:8])
		}
	}
	sum := sha256.Sum256([]byte(f.ID))
	return hex.EncodeToString(sum[:8])
}
