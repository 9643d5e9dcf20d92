function save_system(name)
global model
assert(name, model.name);
model.saved = true;
end
