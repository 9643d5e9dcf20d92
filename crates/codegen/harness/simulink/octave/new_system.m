function new_system(name, kind)
global model
assert(kind, 'Library');
model = struct('name', name, 'lines', {{}}, 'masks', {{}}, 'saved', false);
model.blocks = containers.Map();
end
