class Results:
    def __init__(self, store): self.store=store
def to_json(r): return {}
def to_page(r): return ""
def to_text(r): return ""
