#include "type_description.hpp"

#include "rosidl_runtime_c/type_description/field_type__struct.h"
#include "rosidl_runtime_c/type_description/individual_type_description__struct.h"

namespace rmw_noctule
{
namespace
{

using Field = rosidl_runtime_c__type_description__Field;
using Type = rosidl_runtime_c__type_description__IndividualTypeDescription;

// Of type_description_interfaces/msg/FieldType: an element's number is below 48; arrays, bounded and unbounded sequences of it are 48 apart.
constexpr int kShapes = 48;
constexpr int kNested = 1, kBoundedString = 21, kBoundedWString = 22;

std::string text(const rosidl_runtime_c__String & string) {return std::string(string.data, string.size);}

const char * word(int element)
{
  switch (element) {
    case 2: return "int8";
    case 3: return "uint8";
    case 4: return "int16";
    case 5: return "uint16";
    case 6: return "int32";
    case 7: return "uint32";
    case 8: return "int64";
    case 9: return "uint64";
    case 10: return "float32";
    case 11: return "float64";
    case 13: return "char";
    case 15: return "bool";
    case 16: return "byte";
    case 17: case kBoundedString: return "string";
    case 18: case kBoundedWString: return "wstring";
    default: return nullptr;
  }
}

// "" if there is no word for it.
std::string type_of(const Field & field)
{
  const auto & type = field.type;
  const int element = type.type_id % kShapes;
  std::string word_of;
  if (element == kNested) {
    word_of = text(type.nested_type_name);
  } else if (const char * known = word(element)) {
    word_of = known;
  } else {
    return "";
  }
  if (element == kBoundedString || element == kBoundedWString) {
    word_of += "<=" + std::to_string(type.string_capacity);
  }
  switch (type.type_id / kShapes) {
    case 0: return word_of;
    case 1: return word_of + "[" + std::to_string(type.capacity) + "]";
    case 2: return word_of + "[<=" + std::to_string(type.capacity) + "]";
    case 3: return word_of + "[]";
    default: return "";
  }
}

bool append(std::string & description, const Type & type)
{
  description += "struct " + text(type.type_name) + "\n";
  for (size_t at = 0; at < type.fields.size; ++at) {
    const Field & field = type.fields.data[at];
    const std::string type_name = type_of(field);
    if (type_name.empty()) {
      return false;
    }
    description += " " + type_name + " " + text(field.name) + "\n";
  }
  return true;
}

}  // namespace

std::string describe(const rosidl_runtime_c__type_description__TypeDescription & described)
{
  std::string description;
  if (!append(description, described.type_description)) {
    return "";
  }
  for (size_t at = 0; at < described.referenced_type_descriptions.size; ++at) {
    if (!append(description, described.referenced_type_descriptions.data[at])) {
      return "";
    }
  }
  return description;
}

}  // namespace rmw_noctule
