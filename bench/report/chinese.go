package report

// chineseOf is the Chinese of an English sentence of the report; false: there
// is none, which a test forbids.
func chineseOf(en string) (string, bool) {
	for _, table := range chineseTables() {
		if zh, ok := table[en]; ok {
			return zh, true
		}
	}
	return "", false
}

func chineseTables() []map[string]string {
	return []map[string]string{chineseWords, chinesePage, chineseSentences, chineseReasons, chineseFaults, chineseOracle}
}
