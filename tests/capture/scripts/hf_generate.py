"""transformers: generate of a tiny model. usage: hf_generate.py CALLS TOKENS"""

import sys
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM

calls, tokens = int(sys.argv[1]), int(sys.argv[2])
torch.manual_seed(0)
sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
with tempfile.TemporaryDirectory() as folder:
    LlamaForCausalLM(LlamaConfig(vocab_size=300, num_key_value_heads=4, **sizes)).save_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder)
for _ in range(calls):
    prompt = torch.randint(1, 300, (2, 16))
    made = model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)
print(tuple(made.shape))
